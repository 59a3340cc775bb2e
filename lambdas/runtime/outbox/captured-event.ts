import { MailroomError } from '../base/errors.ts';
import { AGGREGATE_ID_MAX_BYTES } from '../store/keys.ts';
import { refuseTooLarge } from './event-size.ts';
import type { MintedEvent } from './outbox-entry.ts';

/**
 * Refuses an event that its relay could not publish.
 *
 * @param relay - `cdc`, or none for a relay that reads the queue
 * @throws `EVENT_TOO_LARGE`; `INVALID_EVENT`, naming the property
 */
export function refuseUnpublishable(event: MintedEvent, relay: 'cdc' | undefined): void {
  refuseTooLarge(event.entry);
  if (relay === 'cdc') refuseUncaptured(event);
}

/**
 * Refuses an event that change data capture cannot publish: the log has it from its commit on, so it cannot wait until it is due; and a connector stops
 * at a record that Kafka refuses.
 */
function refuseUncaptured({ dueAt, aggregate, entry }: MintedEvent): void {
  const bad = (problem: string) =>
    new MailroomError('INVALID_EVENT', `Event ${entry.detailType}: ${problem}`);
  if (dueAt !== undefined)
    throw bad(
      "it has deliverAt, but this outbox has relay: 'cdc', and change data capture publishes at the commit. Schedule it with an outbox without relay, whose relay publishes it on the bus.",
    );
  for (const [name, text] of Object.entries({ aggregateType: aggregate.type, aggregateId: aggregate.id })) {
    const bytes = Buffer.byteLength(text.replaceAll('\u0000', ''));
    if (bytes < 1 || bytes > AGGREGATE_ID_MAX_BYTES)
      throw bad(
        `${name} must have 1 to ${AGGREGATE_ID_MAX_BYTES} bytes of UTF-8 without NUL, because it is the key or the topic of its record, but it has ${bytes}.`,
      );
  }
}

/** @param factory - the name of the function @throws `BAD_ARGUMENT` */
export function refuseOtherRelay(factory: string, relay: unknown): void {
  if (relay === undefined || relay === 'cdc') return;
  throw new MailroomError(
    'BAD_ARGUMENT',
    `${factory}: relay is ${JSON.stringify(relay)}; allowed: 'cdc'. Omit it if a relay publishes the events.`,
  );
}
