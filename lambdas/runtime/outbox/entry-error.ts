import { explainedBy, MailroomError } from '../base/errors.ts';
import type { BusResult } from '../bus/event-bus.ts';
import type { PendingRow } from './pending-row.ts';

/** Makes the error of an event whose entry the bus did not accept, or did not mention in its answer. */
export function entryError({ eventId }: Pick<PendingRow, 'eventId'>, result?: BusResult): MailroomError {
  if (result?.ok === false && result.code !== 'NO_ANSWER')
    return explainedBy(new MailroomError(result.code, result.message), undefined);
  return new MailroomError(
    'NO_ANSWER',
    `PutEvents returned no result for event ${eventId}, which may have been published; it is published again.`,
  );
}
