import { errorCode, errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import { dropStaleDead } from '../../../lambdas/runtime/store/dynamo/outbox-operator.ts';
import { recordOperation } from '../../../lambdas/runtime/store/operation-record.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { checkBodies } from '../../deployment/invoke.ts';
import { placeOf } from '../../deployment/place.ts';
import { eachOf } from '../../deployment/rows-reader.ts';
import { requireNotPaused } from '../../reports/checks/pauses.ts';
import { changingRule } from '../../reports/checks/rule-checks.ts';
import { choose, type DeadLetterChoice } from '../../reports/dead-letters/choice.ts';
import { type DeadLetter, deadLetterSource, putBack } from '../../reports/dead-letters/dead-letters.ts';
import { lowestFirst } from '../../reports/dead-letters/redrive-order.ts';
import { judgeDeadLetters } from '../../reports/dead-letters/redrive-plan.ts';
import { orderReader } from '../../reports/order/order-of-aggregate.ts';
import type { ChangeOptions, PlannedVerdicts } from '../../terminal/change.ts';
import { EXIT } from '../../terminal/io.ts';
import { many } from '../../terminal/output.ts';
import type { OperatorChange } from '../change.ts';
import { settleUnreadable } from '../discard/discard-one.ts';
import { asPlanned, receiveForChange } from '../planned-dead-letters.ts';
import { sweep } from '../sweep.ts';
import { planText, type RedrivePlan, redriveJson } from './redrive-report.ts';
import { type Redriven, redriveInSteps } from './redrive-steps.ts';
import { redrivenText } from './redriven-text.ts';
import { redriverOf } from './redrivers.ts';

interface RedriveOptions extends ChangeOptions, DeadLetterChoice {
  readonly source: string;
  readonly limit?: number | undefined;
  /** Dead letters per second. @default 10 */
  readonly rate?: number;
  readonly wait?: number;
  /** Tries every dead letter once, whatever fails. @default false */
  readonly keepGoing?: boolean;
  readonly verbose?: boolean;
}

/** The default of `--limit`. */
export const REDRIVE_MAX = 1_000;

/** If the command dies, dead letters reappear after this many seconds. */
const REDRIVE_HIDES_S = 900;
const PLAN_HIDES_S = 30;

/** The defaults of `--wait`: a consumer starts at once; DEAD events wait for the sweep, which runs every minute. */
const WAIT_MS = 60_000;
const DEAD_WAIT_MS = 180_000;

/** The default of `--rate`. */
export const RATE_PER_S = 10;

/** The plan of a redrive, of which only those that it touches are still hidden. */
interface HeldPlan extends RedrivePlan {
  readonly touched: RedrivePlan['judged'];
}

/** `mailroom dlq redrive`. */
export const redrive: OperatorChange<RedriveOptions, HeldPlan, Redriven, ReturnType<typeof redriveJson>> = {
  plan: async (deployment, options, planned) => {
    const source = deadLetterSource(deployment.directory, options.source);
    const { apply = false } = options;
    if (apply && source.kind !== 'dead' && source.kind !== 'stream')
      await requireNotPaused(deployment, source.consumer);
    const plan = await planOf(deployment, source, options, planned);
    const touched = apply ? plan.judged.filter(isTouched) : [];
    const ids = new Set(touched.map(({ id }) => id));
    const others = plan.received.deadLetters.filter(({ id }) => !ids.has(id));
    await putBack(deployment.queues, source, others);
    return { ...plan, touched };
  },
  apply: async (deployment, { source, judged }, { reason, rate: ratePerS = RATE_PER_S, wait, keepGoing }) => {
    const { terminal, queues, clock } = deployment;
    const handled = judged.filter(({ verdict }) => verdict === 'handled');
    const runs = lowestFirst(judged.filter(({ verdict }) => verdict === 'runs'));
    const note = { by: await deployment.operator(), reason };
    if (handled.length + runs.length > 0) {
      // Recorded before it is done, so it names the order and not its outcome.
      const deleted = handled.length === 0 ? '' : `, deletion of ${handled.length} already handled`;
      const subject = `${source.name}: redrive of ${many(runs.length, 'dead letter')}${deleted}`;
      await recordOperation(deployment, { ...note, command: 'dlq redrive', subject });
    }
    if (source.kind === 'dead' && runs.length > 0)
      terminal.say('The sweep publishes the events: each of the three steps can take a minute.');
    const errors: unknown[] = [];
    const undeleted = await eachOf(handled, async (deadLetter) => {
      const { id, received } = deadLetter;
      try {
        await settleUnreadable(deployment, source, [deadLetter], note);
        // The inbox would only absorb it.
        if (source.kind === 'dead') await dropStaleDead(deployment, id);
        else if (received !== undefined) await queues.remove(source.url, received);
        return [];
      } catch (error) {
        errors.push(error);
        return [{ deadLetter, code: errorCode(error), message: errorMessage(error) }];
      }
    });
    if (runs.length === 0 && errors.length > 0 && errors.length === handled.length) throw errors[0];
    const redriver = redriverOf(
      {
        ...deployment,
        sweep: (range) => sweep(deployment, { ...range, until: Math.min(range.until, clock.now()) }),
      },
      source,
      note,
    );
    const waitMs = wait ?? (source.kind === 'dead' ? DEAD_WAIT_MS : WAIT_MS);
    const pace = { ratePerS, waitMs, keepGoing };
    const look = async (deadLetter: DeadLetter) => {
      const progress = await redriver.look(deadLetter);
      const isOver = progress.state === 'done' || progress.state === 'handled';
      // Repeated with the look if it fails.
      if (isOver) await settleUnreadable(deployment, source, [deadLetter], note);
      return progress;
    };
    const redriven = await redriveInSteps({ ...terminal, clock }, runs, { ...redriver, look }, pace);
    return { ...redriven, failed: [...undeleted.flat(), ...(redriven.failed ?? [])] };
  },
  result: ({ terminal }, { plan, made }) => {
    const { judged, changed = [] } = plan;
    const handled = judged.filter(({ verdict }) => verdict === 'handled');
    const left = judged.length + changed.length - handled.length;
    const over = (made?.done.length ?? 0) + (made?.handled.length ?? 0);
    const isDone = made === undefined || (over === left && (made.failed ?? []).length === 0);
    const isStopped = made !== undefined && terminal.signal.aborted;
    return {
      json: redriveJson(plan, made),
      exitCode: isStopped ? EXIT.stopped : isDone ? EXIT.ok : EXIT.attention,
    };
  },
  text: (deployment, { plan, made }, { rate, ...options }) => {
    const repeated = { ...options, rate: rate === RATE_PER_S ? undefined : rate };
    if (made === undefined) return planText(deployment, plan, repeated);
    const interrupted = deployment.terminal.signal.aborted;
    return redrivenText(deployment, plan, made, { ...repeated, interrupted });
  },
  release: ({ queues }, { source, touched }) => putBack(queues, source, touched),
};

async function planOf(
  deployment: Deployment,
  source: RedrivePlan['source'],
  { ids, cause, apply, limit = REDRIVE_MAX }: RedriveOptions,
  planned: PlannedVerdicts | undefined,
): Promise<RedrivePlan> {
  const { stored, queues, clock, clients } = deployment;
  const place = await placeOf(deployment);
  const hideS = apply ? REDRIVE_HIDES_S : PLAN_HIDES_S;
  const received = await receiveForChange(deployment, source, { limit, hideS, planned });
  try {
    const { chosen, choice } = choose(deployment, source, received.deadLetters, { ids, cause }, planned);
    const judged = await judgeDeadLetters(
      {
        stored,
        check: (consumer, bodies) => checkBodies(clients.lambda, consumer, bodies),
        now: clock.now(),
        changing: (consumer) => changingRule(deployment, consumer),
        orders: orderReader({ ...deployment, now: clock.now() }),
      },
      source,
      chosen,
    );
    const { same, changed } = asPlanned(
      planned,
      judged,
      (one) => one,
      ({ verdict }) => verdict,
    );
    return { place, source, judged: same, changed, received, choice };
  } catch (error) {
    await putBack(queues, source, received.deadLetters);
    throw error;
  }
}

function isTouched({ verdict }: RedrivePlan['judged'][number]): boolean {
  return verdict === 'runs' || verdict === 'handled';
}
