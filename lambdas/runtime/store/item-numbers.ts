import { NumberValueImpl as NumberValue } from '@aws-sdk/util-dynamodb';

/**
 * Settings for reading numbers: a number if it fits, a bigint if it is whole and too large for a number, otherwise DynamoDB's own
 * text. By default, the SDK throws in the last case, and one such number in one row would stop the reading of its whole page, and
 * with it the sweep of its shard.
 */
export const READ_NUMBERS = {
  wrapNumbers: (text: string): number | bigint | NumberValue => {
    const number = Number(text);
    if (Math.abs(number) <= Number.MAX_SAFE_INTEGER) return number;
    return /^-?\d+$/.test(text) ? BigInt(text) : NumberValue.from(text);
  },
};
