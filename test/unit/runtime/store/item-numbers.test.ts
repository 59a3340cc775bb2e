import { unmarshall } from '@aws-sdk/util-dynamodb';
import { expect, test } from 'vitest';
import { READ_NUMBERS } from '../../../../lambdas/runtime/store/dynamo/attributes.ts';

const read = (N: string) => unmarshall({ n: { N } }, READ_NUMBERS).n;

test('a number is read as a number, as a bigint where it is too large, and as a text where it is neither', () => {
  expect(read('42.5')).toBe(42.5);
  expect(read('-9007199254740991')).toBe(-9007199254740991);
  expect(read('9007199254740993')).toBe(9007199254740993n);
  expect(read('9007199254740993.5')).toMatchObject({ value: '9007199254740993.5' });
});
