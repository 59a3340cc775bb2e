/**
 * Units that AWS bills for a request, by its published rules. Each rule is implemented once, with the page that states it; all
 * DynamoDB pages are from its developer guide.
 */

/** The bytes of an item that one write unit covers ("DynamoDB read and write operations"). */
const WRITE_UNIT_BYTES = 1_024;

/** The bytes that one read unit covers ("DynamoDB read and write operations"). */
const READ_UNIT_BYTES = 4_096;

/** An entry on the bus is billed as one event per started 64 KB (EventBridge pricing, event buses). */
const BUS_EVENT_BYTES = 64 * 1_024;

/**
 * A transaction takes two underlying writes or reads per item, to prepare and to commit, even if it is cancelled ("Amazon
 * DynamoDB Transactions: How it works", capacity management).
 */
const TRANSACTION_FACTOR = 2;

/** The consistency of a read. */
export type Consistency = 'eventual' | 'strong' | 'transactional';

/** Read units by consistency ("DynamoDB read and write operations"). */
const READ_FACTOR = { eventual: 0.5, strong: 1, transactional: TRANSACTION_FACTOR } as const;

/**
 * The write units of one item: the larger of its sizes before and after, per started KB, at least one ("DynamoDB read and write
 * operations"). A refused conditional write is billed too, by the larger of the existing item and the intended one (same page),
 * or one unit if the item does not exist and the write would not create it.
 *
 * @param bytes - sizes of the item before and after; 0 while it does not exist
 * @param transactional - true if a transaction writes or checks it
 */
export function writeUnits(bytes: { before: number; after: number }, transactional = false): number {
  const units = Math.max(1, Math.ceil(Math.max(bytes.before, bytes.after) / WRITE_UNIT_BYTES));
  return units * (transactional ? TRANSACTION_FACTOR : 1);
}

/**
 * The write units of one index for one change of the table ("Using Global Secondary Indexes in DynamoDB", write capacity): none
 * if the projected item is unchanged or is in the index neither before nor after; one write if it is added, removed or changed in
 * place; a delete and a put if its index key changes.
 *
 * Indexes are updated after a transaction completes ("Transactions: How it works"), so their writes are not transactional and
 * count once.
 *
 * @param entry - the sizes of the projected item before and after, 0 if it is not in the index
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
 * The read units of one item, or of all items that one page of a query or scan reads before its filter: their total size per
 * started 4 KB. A read that finds nothing counts as the smallest one ("DynamoDB read and write operations").
 */
export function readUnits(bytes: number, consistency: Consistency): number {
  return Math.max(1, Math.ceil(bytes / READ_UNIT_BYTES)) * READ_FACTOR[consistency];
}

/** The members of a bus entry that count. */
export interface BilledEntry {
  readonly Source?: string | undefined;
  readonly DetailType?: string | undefined;
  readonly Detail?: string | undefined;
}

/** The number of events that an entry is billed as (EventBridge user guide, "Calculating PutEvents event entry size"; pricing). */
export function busEvents({ Source = '', DetailType = '', Detail = '' }: BilledEntry): number {
  const bytes = Buffer.byteLength(Source) + Buffer.byteLength(DetailType) + Buffer.byteLength(Detail);
  return Math.max(1, Math.ceil(bytes / BUS_EVENT_BYTES));
}
