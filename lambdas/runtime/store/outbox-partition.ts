/** The prefix of the partition keys of outbox rows. */
export const OUTBOX_PREFIX = 'OUTBOX#';

/** Makes the partition key of the events of one minute and one shard, both of which are in an event's id. */
export function outboxPartition(minute: string, shard: number): string {
  return `${OUTBOX_PREFIX}${minute}#${shardText(shard)}`;
}

/** The number of shards that event ids can name: the shard is their last byte. */
export const SHARDS_MAX = 256;

/** Reads the key of an outbox partition: the start of its minute, epoch milliseconds, and its shard. `undefined` if it is not such a partition. */
export function outboxPartOf(PK: unknown): { readonly startsAt: number; readonly shard: number } | undefined {
  const [, minute, digits] = /^OUTBOX#(\d{4}-\d\d-\d\dT\d\d:\d\d)#(\d{2,3})$/.exec(String(PK)) ?? [];
  const startsAt = Date.parse(`${minute}Z`);
  const shard = Number(digits);
  return Number.isNaN(startsAt) || shard >= SHARDS_MAX ? undefined : { startsAt, shard };
}

/** The shard in two or three decimal digits, as in keys. */
export function shardText(shard: number): string {
  return String(shard).padStart(2, '0');
}
