import { errorCode, errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import type { RejectRequest } from '../../../lambdas/runtime/consume/settle-requests.ts';
import { repairMissing } from '../../../lambdas/runtime/operations/audit/audit-repair.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import { type Note, recordOperation } from '../../../lambdas/runtime/store/operation-record.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { settleByConsumer } from '../../deployment/invoke.ts';
import { eachOf } from '../../deployment/rows-reader.ts';
import type { DeadLetterSource } from '../../reports/dead-letters/dead-letters.ts';
import { inTurns } from '../../reports/dead-letters/redrive-order.ts';
import { outboxChangesOf } from '../outbox-changes.ts';
import { type Discarded, discardOne, stays } from './discard-one.ts';
import type { DiscardStep } from './discard-plan.ts';

/**
 * Discards the dead letters of a plan, those of one aggregate one after another. A failure of one does not stop the others, whose outcomes
 * would be lost with it.
 *
 * @throws the first error, if every discard failed
 */
export async function discardAll(
  deployment: Deployment,
  source: DeadLetterSource,
  plan: readonly DiscardStep[],
  {
    reason,
    effectsChecked,
    reject,
  }: Readonly<Record<'effectsChecked' | 'reject', boolean> & { reason: string }>,
): Promise<DiscardStep[]> {
  const { clients } = deployment;
  const note = { by: await deployment.operator(), reason, effectsChecked, rejects: reject };
  const deps = {
    ...deployment,
    reject: reject
      ? (consumer: ConsumerEntry, request: RejectRequest) =>
          settleByConsumer(clients.lambda, consumer, request)
      : undefined,
  };
  let done = 0;
  const failures: unknown[] = [];
  const discardStep = async (step: DiscardStep): Promise<DiscardStep> => {
    const { eventId = step.deadLetter.id } = step.deadLetter;
    const command = reject ? 'dlq discard --reject' : 'dlq discard';
    await recordOperation(deployment, { by: note.by, reason, command, subject: `${source.name} ${eventId}` });
    const how = step.outcome === 'reject' ? deps : deployment;
    // Invariant: a message that stands for an event of the outbox is discarded only once that event was sent to its consumer. If the
    // command dies in between, the next run finds the event received, or sends a duplicate that the inbox absorbs.
    const unsent = await sendFirst(deployment, step, note);
    if (unsent !== undefined) return { ...step, outcome: 'failed', message: unsent };
    const discarded = repaired(step, await discardOne(how, source, step.deadLetter, note));
    done += 1;
    deployment.terminal.progress(`${done} of ${plan.length} discarded`, { done, of: plan.length });
    return { ...step, ...discarded };
  };
  const tryStep = async (step: DiscardStep): Promise<DiscardStep> => {
    if (stays(step.outcome)) return step;
    if (deployment.terminal.signal.aborted) return { ...step, outcome: 'untried' };
    try {
      return await discardStep(step);
    } catch (error) {
      failures.push(error);
      return { ...step, outcome: 'failed', message: `${errorCode(error)}: ${errorMessage(error)}` };
    }
  };
  const ended = await eachOf(inTurns(source, plan), async (turn) => {
    const steps: DiscardStep[] = [];
    for (const step of turn) steps.push(await tryStep(step));
    return steps;
  });
  if (done === 0 && failures.length > 0) throw failures[0];
  return ended.flat();
}

/** Sends the events of an unreadable message to its consumer. @returns why one of them was not sent */
async function sendFirst(
  deployment: Deployment,
  { outcome, events = [] }: DiscardStep,
  note: Note,
): Promise<string | undefined> {
  if (outcome !== 'repair') return undefined;
  const deps = { ...deployment, outboxChanges: outboxChangesOf(deployment) };
  const { unsent } = await repairMissing(deps, events, note, 'dlq discard');
  return unsent.map(({ eventId, why }) => `Event ${eventId} was not sent: ${why}.`).join(' ') || undefined;
}

/** The outcome of a message whose events were sent first. */
function repaired({ outcome, message }: DiscardStep, discarded: Discarded): Discarded {
  if (outcome !== 'repair' || discarded.outcome !== 'discarded') return discarded;
  return { outcome: 'repaired', message };
}
