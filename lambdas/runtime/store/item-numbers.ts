import { NumberValueImpl as NumberValue } from '@aws-sdk/util-dynamodb';

/**
 * How items are read: a number as a number, as a bigint where it is whole and too large for one, and as DynamoDB's own
 * text where it is neither. The SDK's default throws there, and one such number in one row would stop the reading of
 * its whole page, and so the sweep of its shard.
 */
export const READ_NUMBERS = {
  wrapNumbers: (text: string): number | bigint | NumberValue => {
    const number = Number(text);
    if (Math.abs(number) <= Number.MAX_SAFE_INTEGER) return number;
    return /^-?\d+$/.test(text) ? BigInt(text) : NumberValue.from(text);
  },
};
