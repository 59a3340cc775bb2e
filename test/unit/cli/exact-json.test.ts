import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { exactJson, lossyNumberText } from '../../../cli/terminal/exact-json.ts';

describe('JSON that an operator hands in', () => {
  test.each([
    ['9007199254740993', 'rounded'],
    ['-9007199254740993', 'rounded'],
    ['0.1234567890123456789', 'rounded'],
    ['12345678901234567890e-2', 'rounded'],
    ['1.00000000000000000001', 'rounded'],
    ['1e400', 'null'],
    ['-1e400', 'null'],
    ['1e-400', '0'],
    ['0.0000001e-330', '0'],
  ])('is refused with the number %s, which would become another one', (number, becomes) => {
    expect(lossyNumberText(`[{"a":${number}}]`)).toMatch(
      new RegExp(`^The number ${number} .* ${becomes}\\.$`),
    );
    expect(() => exactJson(`[{"a":${number}}]`)).toThrow('Write it as a string, if its readers allow that.');
  });

  test.each([
    '9007199254740992',
    '1.00000000000000000000',
    '100000000000000000000000',
    '1e21',
    '1E+2',
    '5e-324',
    '-0',
    '0e999999999999999999999',
    '"9007199254740993"',
    '"\\"9007199254740993"',
  ])('keeps %s', (value) => {
    expect(lossyNumberText(`[${value}]`)).toBeUndefined();
    expect(exactJson(`[${value}]`)).toEqual(JSON.parse(`[${value}]`));
  });

  test('keeps every number that JavaScript writes', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
        expect(lossyNumberText(JSON.stringify([number]))).toBeUndefined();
      }),
    );
  });

  test('is refused if an integer in it changes, and never for a safe one', () => {
    fc.assert(
      fc.property(fc.bigInt(), (number) => {
        const isKept = String(Number(number)) === String(number) || /e/.test(String(Number(number)));
        if (!isKept) expect(lossyNumberText(`[${number}]`)).toBeDefined();
        if (Number.isSafeInteger(Number(number))) expect(lossyNumberText(`[${number}]`)).toBeUndefined();
      }),
    );
  });
});
