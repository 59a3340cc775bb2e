import { marshall } from '@aws-sdk/util-dynamodb';
import { mintEventId, outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import { itemBytes } from '../../lambdas/runtime/store/item-size.ts';
import { orderPlaced, ordersOutbox, RELAY_CONFIG } from './events.ts';

/** What is kept of an outbox row; the rest is one of a few templates. */
interface StubRow {
  readonly sk: string;
  /** Which template, and so which payload. */
  readonly template: number;
  readonly leaseUntil: number;
}

/** How many rows there are, spread evenly over a time. Epoch milliseconds. */
export interface PendingRows {
  readonly count: number;
  readonly from: number;
  readonly to: number;
}

/** Many pending outbox rows in little memory, by partition and in the order of their keys. */
export interface OutboxRows {
  /** A page of a query: reads up to 1 MB, as DynamoDB does, and gives items as JSON texts. */
  page(pk: string, after: string | undefined): { items: string[]; last: string | undefined };
}

/** The most bytes that one page of a query reads: 1 MB (DynamoDB API reference, Query). */
const PAGE_BYTES_MAX = 1024 * 1024;

const BORN_LEASE_MS = 30_000;

const TEMPLATES = 15;

/** Makes the rows; each is one that the real outbox wrote, under an id of its own and with a born lease of 30 s. */
export async function createOutboxRows({ count, from, to }: PendingRows): Promise<OutboxRows> {
  const entries = await ordersOutbox().entries(Array.from({ length: TEMPLATES }, (_, n) => orderPlaced(n)));
  const templates = entries.map(({ Put: { Item } }) => ({
    text: JSON.stringify(marshall(Item, { removeUndefinedValues: true })),
    bytes: itemBytes({ ...Item }),
    id: Item.SK.slice('EVENT#'.length),
    pk: Item.PK,
    leaseUntil: String(Item.leaseUntil),
  }));
  const partitions = new Map<string, StubRow[]>();
  for (let n = 0; n < count; n += 1) {
    const writtenAt = Math.floor(from + ((to - from) * n) / count);
    const { PK, SK } = outboxKeyOf(mintEventId(writtenAt, RELAY_CONFIG.shards));
    const partition = partitions.get(PK) ?? [];
    partitions.set(PK, partition);
    partition.push({ sk: SK, template: n % TEMPLATES, leaseUntil: writtenAt + BORN_LEASE_MS });
  }
  for (const rows of partitions.values()) rows.sort((a, b) => (a.sk < b.sk ? -1 : 1));

  function textOf(pk: string, { sk, template, leaseUntil }: StubRow): string {
    const { text = '', id = '', pk: ownPk = '', leaseUntil: lease = '' } = templates[template] ?? {};
    return text
      .replaceAll(id, sk.slice('EVENT#'.length))
      .replace(ownPk, pk)
      .replace(`"${lease}"`, `"${leaseUntil}"`);
  }

  return {
    page: (pk, after = '') => {
      const items: string[] = [];
      let bytes = 0;
      for (const row of partitions.get(pk) ?? []) {
        if (row.sk <= after) continue;
        items.push(textOf(pk, row));
        bytes += templates[row.template]?.bytes ?? 0;
        if (bytes >= PAGE_BYTES_MAX) return { items, last: row.sk };
      }
      return { items, last: undefined };
    },
  };
}
