import { MailroomError } from '../base/errors.ts';
import { type BusEntry, entryBytes, PUT_EVENTS_BYTES_MAX } from '../bus/event-bus.ts';
import type { Envelope } from '../events/event.ts';
import { ITEM_BYTES_MAX } from '../store/table.ts';

/** The largest outbox row. 8 KB stay free, so that `publishedAt`, `lastError` and similar attributes always fit later. */
const ROW_BYTES_MAX = ITEM_BYTES_MAX - 8 * 1024;

/**
 * Refuses an event that EventBridge or the table would refuse.
 *
 * @param entry - as it will be published; its detail is the envelope
 * @param rowBytes - its size in the table @default its storage has no limit
 * @throws `EVENT_TOO_LARGE`, with both sizes
 */
export function refuseTooLarge(entry: BusEntry, rowBytes?: number): void {
  const published = entryBytes(entry);
  if (published < PUT_EVENTS_BYTES_MAX && (rowBytes ?? 0) <= ROW_BYTES_MAX) return;
  const { type, aggregateType, aggregateId } = JSON.parse(entry.detail) as Envelope;
  const inTable =
    rowBytes === undefined ? '' : `, and ${rowBytes} bytes in the outbox, where at most ${ROW_BYTES_MAX} fit`;
  throw new MailroomError(
    'EVENT_TOO_LARGE',
    `Event ${type} of ${aggregateType} ${aggregateId.slice(0, 100)} takes ${published} bytes as an EventBridge entry, which must have fewer than ` +
      `${PUT_EVENTS_BYTES_MAX}${inTable}. Let Mailroom keep its payload in S3 (docs/payloads.md): set payloads of the Mailroom, and pass lambdaPayloads in the function. Or store the large part yourself, and put its address in the event.`,
  );
}
