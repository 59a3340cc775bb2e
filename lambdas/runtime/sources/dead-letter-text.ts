import type { SourceDeadLetter } from './consuming.ts';

/** The longest message, bytes (SQS developer guide, "Amazon SQS message quotas"). */
const SQS_BYTES_MAX = 1_048_576;

/** A record that nests deeper is cut there: its depth must not end the process. */
const DEPTH_MAX = 100;

/**
 * Writes a dead letter as JSON that fits into a message of SQS. A record of Kinesis or Kafka can be larger than that: then its long texts, bytes and lists
 * are cut, and the dead letter has `truncated: true`. What identifies the record stays, so the source still has the whole: the shard and sequence number, or
 * the topic, partition and offset. It never throws, because the message is acknowledged only when its dead letter is kept: bytes are written in Base64,
 * a `bigint` as text, and a record that cannot be written is left out.
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
  try {
    let text = JSON.stringify(plain(letter, Number.POSITIVE_INFINITY));
    for (let longest = maxBytes; longest > 1 && Buffer.byteLength(text) > maxBytes; longest /= 2)
      text = JSON.stringify(plain({ ...letter, truncated: true }, Math.floor(longest)));
    if (Buffer.byteLength(text) <= maxBytes) return text;
  } catch {
    // The record has a getter or a toJSON that throws, or is longer than any text.
  }
  const short = (text: unknown) => String(text).slice(0, Math.floor(maxBytes / 32));
  const { id, reason } = letter;
  const kept = { code: short(reason.code), message: short(reason.message) };
  return JSON.stringify({ id: short(id), reason: kept, truncated: true });
}

/** A value as JSON can have it, with the first `longest` characters, bytes or members of each of its values. */
function plain(value: unknown, longest: number, above: readonly unknown[] = []): unknown {
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'string') return value.slice(0, longest);
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Uint8Array) return Buffer.from(value.subarray(0, longest)).toString('base64');
  if (above.includes(value)) return '[cycle]';
  if (above.length >= DEPTH_MAX) return '[too deep]';
  const inside = [...above, value];
  if ('toJSON' in value && typeof value.toJSON === 'function') return plain(value.toJSON(), longest, inside);
  if (Array.isArray(value)) return value.slice(0, longest).map((one) => plain(one, longest, inside));
  const members = Object.entries(value).slice(0, Math.max(longest, MEMBERS_MIN));
  return Object.fromEntries(members.map(([name, one]) => [name, plain(one, longest, inside)]));
}

/** An object keeps this many members, with which it identifies the record. */
const MEMBERS_MIN = 20;
