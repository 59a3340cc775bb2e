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
