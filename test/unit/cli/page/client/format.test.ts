import { expect, test } from 'vitest';
import { idParts, rate, roughly } from '../../../../../cli/page/client/frame/format.ts';

test('an age has one unit and is at least a second', () => {
  expect([-20, 10, 3_400, 125_000].map(roughly)).toEqual(['1 s', '1 s', '3 s', '2 min']);
});

test('small rates keep their digits', () => {
  expect([0, 0.25, 9.96, 12.4, 1_234].map(rate)).toEqual(['0/s', '0.3/s', '10/s', '12/s', '1,234/s']);
});

test('a long id ends in its last 8 characters, and loses none', () => {
  expect(idParts('01a1fe32-7358-7e75-8b69-4ee374467501')).toEqual([
    '01a1fe32-7358-7e75-8b69-4ee3',
    '74467501',
  ]);
  expect(idParts('evt_1')).toEqual(['', 'evt_1']);
  expect(idParts(`an order ${'😀'.repeat(9)}`)).toEqual(['an order 😀', '😀'.repeat(8)]);
});
