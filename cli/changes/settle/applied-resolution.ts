import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { isFinal } from '../../../lambdas/runtime/inbox/inbox-state.ts';
import {
  areChecked,
  effectsDigest,
  type StartedEffect,
} from '../../../lambdas/runtime/inbox/started-effects.ts';
import { resolveMessage } from '../../../lambdas/runtime/operations/message-operations.ts';
import { isSourceConsumer } from '../../../lambdas/runtime/operations/source-consumers.ts';
import { readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { effectsUnchecked, effectText } from '../../deployment/effects.ts';
import { settleByConsumer } from '../../deployment/invoke.ts';
import { isStrict, placed } from '../../reports/order/place-of-message.ts';
import { causeOf, fixText, type ManualFix } from './fix-file.ts';
import { ended, type MadeDecision, type MessageResult, nameOf, record } from './message-decision.ts';
import type { Resolution } from './resolution.ts';
import { effectsUnknown, fixRefused, leased, unreadable } from './resolution-refusals.ts';

/** Resolves a message. @throws if its effects were not checked, or its consumer refuses the fix */
export async function applyResolution(
  deployment: Deployment,
  made: MadeDecision,
  { entry, fix, state, isRowDeleted, effects, areUnknown, found, open }: Resolution,
): Promise<MessageResult> {
  const { consumer, eventId, reason, force = false, effectsChecked = false } = made;
  const { clock, clients } = deployment;
  const { place } = found;
  if (areUnknown && !effectsChecked) throw effectsUnknown(made, isRowDeleted);
  const unchecked = (open: readonly StartedEffect[]) =>
    effectsUnchecked(`Message ${eventId} of ${consumer}`, open.map(effectText));
  if (effects.length > 0 && !areChecked(effectsChecked, effects)) throw unchecked(effects);
  // Bound to what this run has read: an effect that starts meanwhile is not checked. Of a row that cannot be read, none is known.
  const checked = effectsChecked && state.is !== 'unreadable' ? effectsDigest(effects) : effectsChecked;
  const cause = causeOf(eventId, found.event);
  const by = isFinal(state)
    ? await deployment.operator()
    : await record(deployment, 'messages resolve', made);
  const result =
    fix === undefined || isSourceConsumer(entry)
      ? await resolveMessage(deployment, {
          ...{ ...made, effectsChecked: checked, by, isStrict: isStrict(entry) },
          order: placed(place),
        })
      : await settleByConsumer(clients.lambda, entry, {
          mailroomCommit: { eventId, by, reason, force, effectsChecked: checked, cause, ...fix },
        });
  switch (result.status) {
    case 'leased':
      throw leased(made, result.until, clock.now());
    case 'unreadable':
      throw unreadable(made, result.problem);
    case 'row-deleted':
      throw effectsUnknown(made, true);
    case 'effects-unchecked':
      throw unchecked(result.effects);
    case 'out-of-order':
      throw new MailroomError(
        'OUT_OF_ORDER',
        `Message ${eventId} of ${consumer} cannot end before sequence ${result.missing} of its aggregate, which was not applied. Nothing was changed. End or skip that one first.`,
      );
    case 'refused':
      if (fix === undefined || result.code !== ALREADY_SETTLED) throw fixRefused(made, result);
      break;
  }
  const left = result.status === 'resolved' ? open : '';
  if (fix !== undefined) {
    const fixed = await fixResult(deployment, made, fix, result.status === 'resolved');
    return { ...fixed, text: `${fixed.text}${left}` };
  }
  if ('earlier' in result && result.earlier !== undefined) return ended(made, result.earlier);
  return { status: result.status, text: `${nameOf(made)} is ${result.status}.${left}` };
}

/** The code with which a function answers for a message that another decision has ended. */
const ALREADY_SETTLED = 'ALREADY_SETTLED';

/** Reports a fix whose message is final. Its function has told whether it was committed, now or by an earlier run of this command. */
async function fixResult(
  { stored }: Deployment,
  made: MadeDecision,
  fix: ManualFix,
  committed: boolean,
): Promise<MessageResult> {
  if (committed)
    return {
      status: 'resolved',
      committed,
      text: `${nameOf(made)} is resolved. It committed ${fixText(fix)}.`,
    };
  const row = readable(await stored.inbox.byEvent(made.consumer, made.eventId, true));
  const isOver = row?.status === 'PROCESSED' || row?.status === 'DISCARDED';
  const { status, text } = isOver
    ? ended(made, row)
    : { status: 'processed', text: `${nameOf(made)} is final.` };
  return { status, committed, text: `${text} The fix was not committed: ${fixText(fix)}.` };
}
