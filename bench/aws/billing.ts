/**
 * What AWS bills for a request, by its published rules. Every rule stands here once, with the page that states it; all
 * pages of DynamoDB are of its developer guide.
 */

/** A write unit covers so much of an item ("DynamoDB read and write operations"). */
const WRITE_UNIT_BYTES = 1_024;

/** A read unit covers so much ("DynamoDB read and write operations"). */
const READ_UNIT_BYTES = 4_096;

/** An entry on the bus is billed as one event for each started 64 KB (EventBridge pricing, event buses). */
const BUS_EVENT_BYTES = 64 * 1_024;

/**
 * Two underlying writes, or reads, of every item of a transaction: to prepare it and to commit it; also when it is
 * cancelled ("Amazon DynamoDB Transactions: How it works", capacity management).
 */
const TRANSACTION_FACTOR = 2;

/** How a read was asked for. */
export type Consistency = 'eventual' | 'strong' | 'transactional';

/** Units of a read by its consistency ("DynamoDB read and write operations"). */
const READ_FACTOR = { eventual: 0.5, strong: 1, transactional: TRANSACTION_FACTOR } as const;

/**
 * The write units of one item: the larger of its sizes before and after, by started KB, at least one ("DynamoDB read
 * and write operations"). A refused conditional write is billed as well, by the larger of the item that is there and
 * the one that was to be (same page); one that finds no item and makes none, one unit.
 *
 * @param bytes - sizes of the item before and after; 0 where there is none
 * @param transactional - whether a transaction writes it, or checks it
 */
export function writeUnits(bytes: { before: number; after: number }, transactional = false): number {
  const units = Math.max(1, Math.ceil(Math.max(bytes.before, bytes.after) / WRITE_UNIT_BYTES));
  return units * (transactional ? TRANSACTION_FACTOR : 1);
}

/**
 * The write units of one index for one change of the table ("Using Global Secondary Indexes in DynamoDB", write
 * capacity): nothing when the projected item stays as it is or is in the index neither before nor after; one write when it
 * comes, goes or changes in place; a delete and a put when its index key changes.
 *
 * Indexes follow a transaction after it completed ("Transactions: How it works"), so their writes are not the
 * transaction's and are counted once.
 *
 * @param entry - the sizes of the projected item before and after, 0 where it is not in the index
 */
export function indexWriteUnits(entry: {
  readonly before: number;
  readonly after: number;
  readonly keyChanged: boolean;
  readonly changed: boolean;
}): number {
  const { before, after, keyChanged, changed } = entry;
  if (!changed) return 0;
  if (before > 0 && after > 0 && keyChanged) {
    return writeUnits({ before, after: 0 }) + writeUnits({ before: 0, after });
  }
  return writeUnits({ before, after });
}

/**
 * The read units of one item, or of all the items that one page of a query or a scan read, before its filter: their sizes
 * together by started 4 KB. A read that finds nothing counts like the smallest ("DynamoDB read and write operations").
 */
export function readUnits(bytes: number, consistency: Consistency): number {
  return Math.max(1, Math.ceil(bytes / READ_UNIT_BYTES)) * READ_FACTOR[consistency];
}

/** The parts of a bus entry that count. */
export interface BilledEntry {
  readonly Source?: string | undefined;
  readonly DetailType?: string | undefined;
  readonly Detail?: string | undefined;
}

/** How many events an entry is billed as (EventBridge user guide, "Calculating PutEvents event entry size"; pricing). */
export function busEvents({ Source = '', DetailType = '', Detail = '' }: BilledEntry): number {
  const bytes = Buffer.byteLength(Source) + Buffer.byteLength(DetailType) + Buffer.byteLength(Detail);
  return Math.max(1, Math.ceil(bytes / BUS_EVENT_BYTES));
}
