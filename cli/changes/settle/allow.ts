import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { TOO_OLD } from '../../../lambdas/runtime/inbox/inbox-conditions.ts';
import type { ConsumerEntry, SourceConsumer } from '../../../lambdas/runtime/operations/directory.ts';
import { allowTooOld, notTooOld } from '../../../lambdas/runtime/operations/message-operations.ts';
import { isSourceConsumer } from '../../../lambdas/runtime/operations/source-consumers.ts';
import type { PlaceInOrder } from '../../../lambdas/runtime/store/inbox-row.ts';
import { readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { refuseUnreached } from '../../deployment/inbox-home.ts';
import { placeOf } from '../../deployment/place.ts';
import { withInbox } from '../../deployment/source-consumer.ts';
import { placed, placeOfMessage } from '../../reports/order/place-of-message.ts';
import { applyWords } from '../../terminal/change.ts';
import { shell } from '../../terminal/shell.ts';
import {
  type DecisionChange,
  type DecisionPlan,
  decided,
  type MessageDecision,
  nameOf,
  record,
  withWholeId,
} from './message-decision.ts';

interface AllowPlan extends DecisionPlan {
  readonly entry: ConsumerEntry | SourceConsumer;
}

/** `mailroom messages allow`: lets a message run that was rejected as too old. */
export const allow: DecisionChange<AllowPlan> = {
  plan: async (deployment, given) => {
    const decision = await withWholeId(deployment, given);
    const { consumer, eventId } = decision;
    const entry = withInbox(deployment, consumer);
    refuseUnreached(entry, deployment.database?.engine);
    const row = await deployment.stored.inbox.byEvent(consumer, eventId, true);
    // Refused changes are not recorded.
    const known = readable(row);
    if (known?.status !== 'REJECTED' || known.reason !== TOO_OLD) throw notTooOld(decision, row);
    // Without an order, its place is of one that was removed, or of a single handler: then the redrive says so.
    const place = entry.order === undefined ? undefined : placed(placeOfMessage(entry, { eventId, row }));
    if (place !== undefined) await refusePassedOver(deployment, decision, place);
    const text =
      `Would allow ${nameOf(decision)} to run. It was rejected as too old, so it may have run before: allow it only if you know ` +
      'that it has not. Nothing was changed. To allow it:';
    const next = shell`messages ${['allow', consumer, eventId, ...applyWords(decision)]}`;
    return {
      place: await placeOf(deployment),
      decision,
      planned: { status: 'allow', text, next },
      entry,
    };
  },
  apply: async (deployment, { decision, entry }, { reason }) => {
    const { consumer, eventId } = decision;
    const made = { ...decision, reason };
    await allowTooOld(deployment, { ...made, by: await record(deployment, 'messages allow', made) });
    if (isSourceConsumer(entry)) {
      const text = `${nameOf(decision)} is allowed to run. Publish its dead letter again to ${entry.from}, where it gets another position and runs. Delivered again at its old position, it is still rejected.`;
      return { status: 'allowed', text };
    }
    return {
      status: 'allowed',
      text: `${nameOf(decision)} is allowed to run. To redrive it:`,
      next: shell`dlq redrive ${[`consumer:${consumer}`, eventId, ...applyWords(made)]}`,
    };
  },
  ...decided,
};

/** @throws `OUT_OF_ORDER` if a redrive of the message would not run it */
async function refusePassedOver(
  { stored }: Deployment,
  decision: MessageDecision,
  { key, sequence }: PlaceInOrder,
): Promise<void> {
  const { last } = await stored.inbox.lastSequence(key);
  if (sequence > last) return;
  throw new MailroomError(
    'OUT_OF_ORDER',
    `${nameOf(decision)} cannot run: it has number ${sequence}, and number ${last} of its aggregate was applied or passed over, so a redrive changes nothing. Nothing was changed.`,
  );
}
