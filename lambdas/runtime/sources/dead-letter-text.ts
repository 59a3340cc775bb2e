import type { SourceDeadLetter } from './consuming.ts';

/** The longest message, bytes (SQS developer guide, "Amazon SQS message quotas"). */
const SQS_BYTES_MAX = 1_048_576;

/**
 * Writes a dead letter as JSON that fits into a message of SQS. A record of Kinesis or Kafka can be larger than that: then its long texts and lists
 * are cut, and the dead letter has `truncated: true`. What identifies the record stays, so the source still has the whole: the shard and sequence number, or
 * the topic, partition and offset.
 *
 * @param maxBytes - the longest text @default 1,048,576, which SQS accepts
 * @returns the dead letter as JSON: `id`, `reason`, `message`, and `truncated` if it was cut
 *
 * @example
 * ```ts
 * deadLetter: (rejected) => sqs.sendMessage({ QueueUrl, MessageBody: deadLetterText(rejected) }),
 * ```
 */
export function deadLetterText(letter: SourceDeadLetter<unknown>, maxBytes = SQS_BYTES_MAX): string {
  let text = JSON.stringify(letter);
  for (let longest = maxBytes; longest > 1 && Buffer.byteLength(text) > maxBytes; longest /= 2)
    text = JSON.stringify({ ...letter, truncated: true }, (_, value) => cut(value, Math.floor(longest)));
  return text;
}

function cut(value: unknown, longest: number): unknown {
  if (typeof value !== 'string' && !Array.isArray(value)) return value;
  return value.length > longest ? value.slice(0, longest) : value;
}
