import { marshall } from '@aws-sdk/util-dynamodb';
import { mintEventId, outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import { itemBytes } from '../../lambdas/runtime/store/item-size.ts';
import { orderPlaced, ordersOutbox, RELAY_CONFIG } from './events.ts';

/** The stored part of an outbox row: the attributes that change. The rest is one of a few templates. */
interface StubRow {
  readonly sk: string;
  /** The index of its template, which determines its payload. */
  readonly template: number;
  status: string;
  leaseUntil: number;
}

/** Many outbox rows in little memory, by partition and in the order of their keys. */
export interface OutboxRows {
  /** Adds a row that was written at a given time, and whose born lease ended 30 s later. */
  add(writtenAt: number, status: string): void;
  /** Call this after the last `add`. */
  sort(): void;
  row(pk: string, sk: string): StubRow | undefined;
  /** A page of a query for one status: reads up to 1 MB, as DynamoDB does, and returns items as JSON texts. */
  page(pk: string, status: string, after: string | undefined): { items: string[]; last: string | undefined };
}

/** The maximum number of bytes that one page of a query reads: 1 MB (DynamoDB API reference, Query). */
const PAGE_BYTES_MAX = 1024 * 1024;

const BORN_LEASE_MS = 30_000;

const TEMPLATES = 15;

/** Creates the rows; each is one that the real outbox wrote, with its own id and lease. */
export async function createOutboxRows(): Promise<OutboxRows> {
  const entries = await ordersOutbox().entries(Array.from({ length: TEMPLATES }, (_, n) => orderPlaced(n)));
  const templates = entries.map(({ Put: { Item } }) => ({
    text: JSON.stringify(marshall(Item, { removeUndefinedValues: true })),
    bytes: itemBytes({ ...Item }),
    id: Item.SK.slice('EVENT#'.length),
    pk: Item.PK,
    leaseUntil: String(Item.leaseUntil),
  }));
  const partitions = new Map<string, StubRow[]>();
  let added = 0;

  function textOf(pk: string, { sk, template, leaseUntil }: StubRow): string {
    const { text = '', id = '', pk: ownPk = '', leaseUntil: lease = '' } = templates[template] ?? {};
    return text
      .replaceAll(id, sk.slice('EVENT#'.length))
      .replace(ownPk, pk)
      .replace(`"${lease}"`, `"${leaseUntil}"`);
  }

  return {
    add: (writtenAt, status) => {
      const { PK, SK } = outboxKeyOf(mintEventId(writtenAt, RELAY_CONFIG.shards));
      const partition = partitions.get(PK) ?? [];
      partitions.set(PK, partition);
      partition.push({
        sk: SK,
        template: added % TEMPLATES,
        status,
        leaseUntil: writtenAt + BORN_LEASE_MS,
      });
      added += 1;
    },
    sort: () => {
      for (const rows of partitions.values()) rows.sort((a, b) => (a.sk < b.sk ? -1 : 1));
    },
    row: (pk, sk) => {
      const rows = partitions.get(pk) ?? [];
      const row = rows[firstFrom(rows, sk)];
      return row?.sk === sk ? row : undefined;
    },
    page: (pk, status, after) => {
      const rows = partitions.get(pk) ?? [];
      const items: string[] = [];
      let bytes = 0;
      for (let i = after === undefined ? 0 : firstFrom(rows, after) + 1; i < rows.length; i += 1) {
        const row = rows[i] as StubRow;
        if (row.status === status) items.push(textOf(pk, row));
        bytes += templates[row.template]?.bytes ?? 0;
        if (bytes >= PAGE_BYTES_MAX) return { items, last: row.sk };
      }
      return { items, last: undefined };
    },
  };
}

/** The index of the first row whose key is not below this one. */
function firstFrom(rows: readonly StubRow[], sk: string): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((rows[middle]?.sk ?? '') < sk) low = middle + 1;
    else high = middle;
  }
  return low;
}
