import { expect, test } from 'vitest';
import { deadLetterText } from '../../../../lambdas/runtime/sources/dead-letter-text.ts';

const letter = (data: string, headers: readonly unknown[] = []) => ({
  id: 'payments/orders/shard:7',
  reason: { code: 'INVALID_PAYLOAD', message: 'data.n is missing' },
  message: { eventID: 'shard:7', kinesis: { data, sequenceNumber: '7', partitionKey: 'a' }, headers },
});

test('a dead letter that fits is the whole of it', () => {
  expect(JSON.parse(deadLetterText(letter('eA==')))).toEqual(letter('eA=='));
});

test.each([
  ['a large body', letter('x'.repeat(2_000_000))],
  ['a body whose characters have several bytes', letter('ä'.repeat(1_000_000))],
  ['long headers', letter('x', [{ trace: Array.from({ length: 900_000 }, () => 120) }])],
  [
    'many headers',
    letter(
      'x',
      Array.from({ length: 100_000 }, (_, n) => ({ [`header-${n}`]: [1, 2, 3] })),
    ),
  ],
])('a dead letter with %s fits into a message of SQS, says so, and identifies its record', (_what, given) => {
  const text = deadLetterText(given);
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(1_048_576);
  expect(JSON.parse(text)).toMatchObject({
    id: given.id,
    reason: given.reason,
    truncated: true,
    message: { eventID: 'shard:7', kinesis: { sequenceNumber: '7', partitionKey: 'a' } },
  });
});

test('as much of the body is kept as half of what fits', () => {
  const { message } = JSON.parse(deadLetterText(letter('x'.repeat(5_000)), 1_000));
  expect(message.kinesis.data.length).toBeGreaterThanOrEqual(500);
});

const cyclic: Record<string, unknown> = { offset: '7' };
cyclic.self = cyclic;
const deep = (depth: number): unknown => (depth === 0 ? 'x' : [deep(depth - 1)]);
const throwing = {
  toJSON: () => {
    throw new Error('not JSON');
  },
};

test.each<[string, unknown, unknown]>([
  ['a cycle', cyclic, { offset: '7', self: '[cycle]' }],
  ['a bigint', { offset: 7n }, { offset: '7' }],
  ['bytes', { value: new Uint8Array([1, 2]) }, { value: 'AQI=' }],
  ['bytes of a Buffer', { value: Buffer.from([1, 2]) }, { value: 'AQI=' }],
  ['a date', { at: new Date(0) }, { at: '1970-01-01T00:00:00.000Z' }],
])('a record with %s is written', (_what, message, written) => {
  expect(JSON.parse(deadLetterText({ ...letter('x'), message }))).toEqual({
    ...letter('x'),
    message: written,
  });
});

test.each<[string, unknown]>([
  ['many bytes', { offset: '7', value: new Uint8Array(3_000_000) }],
  ['great depth', deep(5_000)],
  ['a toJSON that throws', throwing],
  ['many members', Object.fromEntries(Array.from({ length: 200_000 }, (_, n) => [`member-${n}`, n]))],
  ['long names', { ['x'.repeat(2_000_000)]: 1 }],
])('a record with %s has a dead letter that fits and has its id and reason', (_what, message) => {
  const text = deadLetterText({ ...letter('x'), message });
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(1_048_576);
  expect(JSON.parse(text)).toMatchObject({ id: letter('x').id, reason: letter('x').reason });
});
