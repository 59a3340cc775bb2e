import { mintEventId, outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import { itemBytes } from '../../lambdas/runtime/store/item-size.ts';
import { expiresAt, type OutboxRow, SCHEMA } from '../../lambdas/runtime/store/rows.ts';
import { writeUnits } from '../aws/billing.ts';

/** What one event asks of the table. */
export interface Demand {
  /** The outbox row once it is published, bytes. */
  readonly rowBytes: number;
  /** Write units of the put of the outbox row, in its transaction. */
  readonly putUnits: number;
  /** Write units of the mark. */
  readonly markUnits: number;
  /** Write units of the domain row that is written beside it, in the same transaction. */
  readonly domainUnits: number;
  /** Write units of one consumer: its inbox row, and the domain row that its handler writes. */
  readonly consumerUnits: number;
  readonly consumers: number;
}

/** Rows of less than 1 KB: the domain rows and the inbox row. */
const SMALL = { before: 0, after: 1 };

/**
 * What an event asks of the table, from the shape of the outbox row and the rules by which DynamoDB counts. The domain row
 * is taken to be under 1 KB, and handlers to claim and commit (one unit more than transactional ones).
 *
 * @param payloadBytes - the size of the event's payload (`data`) as JSON
 */
export function demandOf(payloadBytes: number, consumers: number): Demand {
  const pending = outboxRow(payloadBytes);
  const before = itemBytes({ ...pending });
  const after = itemBytes({ ...published(pending) });
  return {
    rowBytes: after,
    putUnits: writeUnits({ before: 0, after: before }, true),
    markUnits: writeUnits({ before, after }),
    domainUnits: writeUnits(SMALL, true),
    consumerUnits: writeUnits(SMALL) + 2 * writeUnits(SMALL, true),
    consumers,
  };
}

/** Write units on the outbox row's own key: all events of a minute and shard share that key. */
export function outboxUnits({ putUnits, markUnits }: Demand): number {
  return putUnits + markUnits;
}

/** Write units on keys that every event has for itself. */
export function spreadUnits({ domainUnits, consumerUnits, consumers }: Demand): number {
  return domainUnits + consumers * consumerUnits;
}

/** What a read unit covers of an eventually consistent read (DynamoDB developer guide, "Read and write operations"). */
export const READ_UNIT_BYTES = 8_192;

const AT = Date.UTC(2026, 10, 21);

/** The row that the outbox writes for an order's event. Only its size counts. */
function outboxRow(payloadBytes: number): OutboxRow {
  const eventId = mintEventId(AT, 1);
  return {
    ...outboxKeyOf(eventId),
    schema: SCHEMA,
    status: 'PENDING',
    leaseUntil: AT + 30_000,
    attempts: 0,
    source: 'orders',
    type: 'OrderPlaced',
    envelope: JSON.stringify({
      eventId,
      type: 'OrderPlaced',
      version: 1,
      aggregateType: 'Order',
      aggregateId: eventId,
      occurredAt: AT,
      correlationId: eventId,
      data: 'x'.repeat(Math.max(0, payloadBytes - 2)),
    }),
  };
}

function published(row: OutboxRow): OutboxRow {
  return {
    ...row,
    status: 'PUBLISHED',
    publishedAt: AT + 1_000,
    publishedBy: 'stream',
    expiresAt: expiresAt(AT, 7),
  };
}
