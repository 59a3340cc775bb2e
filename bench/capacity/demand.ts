import { mintEventId, outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import { itemBytes } from '../../lambdas/runtime/store/item-size.ts';
import { expiresAt, type OutboxRow, SCHEMA } from '../../lambdas/runtime/store/rows.ts';
import { writeUnits } from '../aws/billing.ts';

/** The demand of one event on the table. */
export interface Demand {
  /** The size of a published outbox row in bytes. */
  readonly rowBytes: number;
  /** Write units of the put of the outbox row, in its transaction. */
  readonly putUnits: number;
  /** Write units of the mark. */
  readonly markUnits: number;
  /** Write units of the domain row that is written in the same transaction. */
  readonly domainUnits: number;
  /** Write units of one consumer: its inbox row, and the domain row that its handler writes. */
  readonly consumerUnits: number;
  readonly consumers: number;
}

/** Rows of less than 1 KB: the domain rows and the inbox row. */
const SMALL = { before: 0, after: 1 };

/**
 * Computes an event's demand on the table from the shape of the outbox row and DynamoDB's rules. Assumes a domain row under 1 KB,
 * and handlers that claim and commit (one unit more than transactional ones).
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

/** Write units on the outbox row's own key, which all events of a minute and shard share. */
export function outboxUnits({ putUnits, markUnits }: Demand): number {
  return putUnits + markUnits;
}

/** Write units on keys that belong to a single event. */
export function spreadUnits({ domainUnits, consumerUnits, consumers }: Demand): number {
  return domainUnits + consumers * consumerUnits;
}

/** The bytes that one read unit covers in an eventually consistent read (DynamoDB developer guide, "Read and write operations"). */
export const READ_UNIT_BYTES = 8_192;

const AT = Date.UTC(2026, 10, 21);

/** A row as the outbox writes it for an order's event, of a payload that does not compress. Only its size counts. */
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
