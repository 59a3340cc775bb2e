import { errorCode, errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import type { RejectRequest } from '../../../lambdas/runtime/consume/settle-requests.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import { recordOperation } from '../../../lambdas/runtime/store/operation-record.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { settleByConsumer } from '../../deployment/invoke.ts';
import { eachOf } from '../../deployment/rows-reader.ts';
import type { DeadLetterSource } from '../../reports/dead-letters/dead-letters.ts';
import { inTurns } from '../../reports/dead-letters/redrive-order.ts';
import { stays } from './discard-one.ts';
import type { DiscardStep } from './discard-plan.ts';
import { discardSentFirst } from './sent-first.ts';

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
    const discarded = await discardSentFirst(how, source, step, note);
    if (discarded.outcome === 'failed') return { ...step, ...discarded };
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
