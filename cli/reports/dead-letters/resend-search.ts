import { errorCode } from '../../../lambdas/runtime/base/errors.ts';
import type { ConsumerDeadLetters } from '../../../lambdas/runtime/operations/dead-letters.ts';
import { deliveredEvent } from '../../../lambdas/runtime/operations/delivered-event.ts';
import { isEventId, outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { readable, readOutboxRow } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { typedId } from '../../deployment/event-prefix.ts';
import { findResend } from '../../deployment/resent-event.ts';
import { findOne } from './choice.ts';
import type { DeadLetter } from './dead-letters.ts';
import { cannot } from './resend-refusals.ts';
import { REPLACEMENTS_MAX, readStanding, settled, unsentReplacement } from './standing.ts';

/**
 * Finds the dead letter that is resent.
 *
 * A resend may stop after it has discarded the old event, and the dead letter may be gone by then: a redrive in the AWS console sends
 * the old event to the inbox, which absorbs it, and SQS deletes the message. The resend can still be completed from the outbox row of
 * the old event. Each event of the chain finds it: the old one by its row, a replacement by the record of its resend.
 *
 * @param given - the id of a dead letter or of its event, or a part of it; of a resend to be completed, the whole id of either event
 * @throws `NO_SUCH_DEAD_LETTER`, `AMBIGUOUS_ID`; `CANNOT_RESEND` if nothing is left from which a resend could be completed
 */
export async function findToResend(
  deployment: Deployment,
  source: ConsumerDeadLetters,
  given: string,
  stepsMax: number = REPLACEMENTS_MAX,
): Promise<DeadLetter> {
  try {
    return await findOne(deployment, source, given);
  } catch (error) {
    const eventId = typedId(given);
    if (errorCode(error) !== 'NO_SUCH_DEAD_LETTER' || !isEventId(eventId) || stepsMax === 0) throw error;
    const { table, clock } = deployment;
    const resent = await findResend(table, eventId, clock.now());
    if (resent?.consumer === source.consumer.name)
      return findToResend(deployment, source, resent.causationId, stepsMax - 1);
    const stored = await interrupted(deployment, source, eventId);
    if (stored !== undefined) return stored;
    throw error;
  }
}

/** The event of a resend to be completed, as if its dead letter had been received; `undefined` if no resend of it was interrupted. */
async function interrupted(
  { table, clock }: Pick<Deployment, 'table' | 'clock'>,
  { consumer }: ConsumerDeadLetters,
  eventId: string,
): Promise<DeadLetter | undefined> {
  const standing = await readStanding(table, consumer.name, eventId);
  if (settled(standing, clock.now()) !== 'unsent') return undefined;
  const event = readable(readOutboxRow(await table.get(outboxKeyOf(eventId), { consistent: true })));
  if (event === undefined)
    throw cannot(
      `Event ${eventId} was replaced by ${unsentReplacement(standing)}, which ${consumer.name} has not received, and neither its dead letter nor its ` +
        'outbox row exists any more. Have its producer write a correct event.',
    );
  const body = deliveredEvent(event, { region: '', account: '', time: clock.now() });
  return {
    id: eventId,
    eventId,
    type: event.type,
    sentAt: undefined,
    expiresAt: undefined,
    fingerprint: undefined,
    lastError: undefined,
    received: { messageId: eventId, receiptHandle: '', body, sentAt: clock.now(), attributes: {} },
    isGone: true,
    ...standing,
  };
}
