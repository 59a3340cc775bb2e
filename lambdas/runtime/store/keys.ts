import { hasLoneSurrogate } from '../base/json.ts';
import { OUTBOX_PREFIX, outboxPartition, shardText } from './outbox-partition.ts';
import type { Key } from './table.ts';

/** The prefix of the partition keys of inbox rows. */
export const INBOX_PREFIX = 'INBOX#';
/** The prefix of the sort keys of outbox rows. */
export const EVENT_PREFIX = 'EVENT#';
/** The prefix of the partition keys of the last applied sequences. */
export const LAST_PREFIX = 'LAST#';
/** The prefix of the partition keys of the buckets of limits. */
export const LIMIT_PREFIX = 'LIMIT#';
/** The prefix of the partition keys of the keys of unique events: a part of the outbox, which producers may write. */
export const UNIQUE_PREFIX = `${OUTBOX_PREFIX}UNIQUE#`;
/** The beginnings of the partition keys that only Mailroom writes; no domain key may match one. */
export const SYSTEM_PREFIXES = [
  OUTBOX_PREFIX,
  INBOX_PREFIX,
  'DEAD#',
  'SWEEP',
  'MAILROOM#',
  'REJECTED#',
  'FAILED#',
  'OPERATIONS#',
  LAST_PREFIX,
  LIMIT_PREFIX,
];
const HISTORY = 'HISTORY';

/** Makes the key of an event's outbox row. */
export function outboxKey(minute: string, shard: number, eventId: string): Key {
  return { PK: outboxPartition(minute, shard), SK: `${EVENT_PREFIX}${eventId}` };
}

/** Makes the key of a DEAD event's pointer. */
export function deadKey(shard: number, eventId: string): Key {
  return { PK: `DEAD#${shardText(shard)}`, SK: eventId };
}

/** Makes the key of an unsettled minute's pointer. */
export function unsettledKey(shard: number, minute: string): Key {
  return { PK: `SWEEP#${shardText(shard)}`, SK: minute };
}

/** Returns the shard and the unsettled minute of a sweep pointer. */
export function unsettledMinuteOf({ PK, SK }: Key): { readonly shard: number; readonly minute: string } {
  return { shard: Number(PK.slice('SWEEP#'.length)), minute: SK };
}

/** The key of the sweep's state. */
export const SWEEP_STATE_KEY: Key = { PK: 'SWEEP', SK: 'STATE' };

/** The key of the heartbeats' state. */
export const HEARTBEAT_STATE_KEY: Key = { PK: 'MAILROOM#HEARTBEAT', SK: 'STATE' };

/** The partition key of the consumers of other sources than SQS. */
export const SOURCES_PK = 'MAILROOM#SOURCES';

/** Makes the key of the entry of a consumer of another source. */
export function sourceConsumerKey(consumer: string): Key {
  return { PK: SOURCES_PK, SK: consumer };
}

/** Makes the key of a message's inbox row. */
export function inboxKey(consumer: string, eventId: string): Key {
  return { PK: `${INBOX_PREFIX}${consumer}#${eventId}`, SK: 'MESSAGE' };
}

/** Makes the key of the history of a consumer's inbox. */
export function inboxHistoryKey(consumer: string): Key {
  return { PK: `${INBOX_PREFIX}${consumer}#${HISTORY}`, SK: HISTORY };
}

/** Makes the key of a rejected message's pointer. */
export function rejectedKey(consumer: string, eventId: string): Key {
  return { PK: `REJECTED#${consumer}`, SK: eventId };
}

/** Makes the key of a failed message's hint. */
export function failedKey(consumer: string, eventId: string): Key {
  return { PK: `FAILED#${consumer}`, SK: eventId };
}

/** Names the sequence of one aggregate at one consumer. */
export interface SequenceOf {
  readonly consumer: string;
  /** The service that owns the aggregate and numbers its events. */
  readonly source: string;
  /** The events that share the sequence. */
  readonly group: string;
  readonly aggregateType: string;
  readonly aggregateId: string;
}

/** The maximum length of a partition key, in bytes of UTF-8. */
export const PARTITION_KEY_MAX_BYTES = 2_048;

/** The most bytes of UTF-8 of the id of an aggregate whose events are numbered: its definition leaves that much room in the key. */
export const AGGREGATE_ID_MAX_BYTES = 1_024;

/** Makes the key of the last applied sequence of an aggregate, from texts without a {@link lastKeyProblem}. Only the aggregate's id may contain `#`. */
export function lastKey({ consumer, source, group, aggregateType, aggregateId }: SequenceOf): Key {
  const parts = [source, group, aggregateType].map(encodeURIComponent).join('#');
  return { PK: `${LAST_PREFIX}${consumer}#${parts}#${aggregateId}`, SK: 'LAST' };
}

/** Returns the reason why DynamoDB does not store such a key as it is, as the predicate of a sentence; `undefined` if it does. */
export function lastKeyProblem(of: SequenceOf): string | undefined {
  const [torn] = Object.entries(of).find(([, text]) => hasLoneSurrogate(text)) ?? [];
  if (torn !== undefined) return `has half of a surrogate pair in its \`${torn}\``;
  const bytes = Buffer.byteLength(lastKey(of).PK);
  return bytes <= PARTITION_KEY_MAX_BYTES
    ? undefined
    : `needs a key of ${bytes} bytes for its \`source\`, \`type\`, \`aggregateType\` and \`aggregateId\`, but a key has at most ${PARTITION_KEY_MAX_BYTES}`;
}

/** Returns the aggregate in the partition key of a last applied sequence. */
export function sequenceOf(PK: string): SequenceOf {
  const [, consumer = '', source = '', group = '', aggregateType = '', ...aggregateId] = PK.split('#');
  return {
    consumer,
    source: decodeURIComponent(source),
    group: decodeURIComponent(group),
    aggregateType: decodeURIComponent(aggregateType),
    aggregateId: aggregateId.join('#'),
  };
}

/** Names a limit: its own name, which consumers may share, or the handler whose own it is. */
export type LimitOf =
  | { readonly name: string }
  | { readonly consumer: string; readonly source: string; readonly type: string };

/** Makes the key of the bucket of one key of a limit. A shared name has no consumer before it, and no consumer's name is empty. */
export function limitKey(limit: LimitOf, key: string): Key {
  const of =
    'name' in limit
      ? `#${limit.name}`
      : [limit.consumer, ...[limit.source, limit.type].map(encodeURIComponent)].join('#');
  return { PK: `${LIMIT_PREFIX}${of}#${key}`, SK: 'LIMIT' };
}

/** Makes the key of the row of a unique event's key. Only the key may contain `#`. */
export function uniqueKey(
  { source, type }: { readonly source: string; readonly type: string },
  key: string,
): Key {
  return { PK: `${UNIQUE_PREFIX}${[source, type].map(encodeURIComponent).join('#')}#${key}`, SK: 'UNIQUE' };
}

/** Makes the key of an operation's record: by month, in time order. */
export function operationKey(at: number, token: string): Key {
  const time = new Date(at).toISOString();
  return { PK: `OPERATIONS#${time.slice(0, 7)}`, SK: `${time}#${token}` };
}
