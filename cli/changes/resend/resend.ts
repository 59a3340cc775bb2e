import { requireNotPaused } from '../../reports/checks/pauses.ts';
import { deadLetterSource } from '../../reports/dead-letters/dead-letters.ts';
import { EXIT } from '../../terminal/io.ts';
import type { OperatorChange } from '../change.ts';
import { consumerSource, newData, planResend } from './resend-plan.ts';
import {
  type ConfirmedResend,
  outcomeOf,
  type ResendOptions,
  resendJson,
  resendText,
  type SentResend,
} from './resend-report.ts';
import { findToResend, sendAndWait } from './send-in-place.ts';

/** `mailroom dlq resend`. */
export const resend: OperatorChange<
  ResendOptions,
  ConfirmedResend,
  SentResend,
  ReturnType<typeof resendJson>
> = {
  plan: async (deployment, options, planned) => {
    const source = consumerSource(deadLetterSource(deployment.directory, options.source));
    if (options.apply) await requireNotPaused(deployment, source.consumer);
    const data = newData(await options.readData());
    const deadLetter = await findToResend(deployment, source, options.id);
    const { repeatEffects } = options;
    const plan = await planResend(deployment, source, deadLetter, { data, repeatEffects });
    const { eventId, verdict } = plan.judged;
    return { ...plan, isChanged: planned !== undefined && planned.get(eventId) !== verdict };
  },
  apply: async (deployment, plan, { reason, wait }) => {
    if (plan.judged.verdict !== 'runs' || plan.isChanged) return { redriven: undefined };
    const note = { by: await deployment.operator(), reason };
    return { redriven: await sendAndWait(deployment, plan, note, wait) };
  },
  result: (deployment, resent, options) => {
    const { plan, made } = resent;
    const isStopped = made?.redriven !== undefined && deployment.terminal.signal.aborted;
    const runs = made === undefined && plan.judged.verdict === 'runs';
    const isFine = runs || outcomeOf(resent) === 'processed';
    return {
      json: resendJson(deployment, resent, options),
      exitCode: isStopped ? EXIT.stopped : isFine ? EXIT.ok : EXIT.attention,
    };
  },
  text: resendText,
};
