import { Command, InvalidArgumentError } from 'commander';
import { recordOperation } from '../../lambdas/runtime/store/operation-record.ts';
import { settleUnreadable } from '../changes/discard/discard-one.ts';
import { asPlanned, receiveForChange } from '../changes/planned-dead-letters.ts';
import { planText, type RedrivePlan, redriveJson, redrivenText } from '../changes/redrive/redrive-report.ts';
import { redriveInSteps, redriverOf } from '../changes/redrive/redrive-steps.ts';
import type { Deployment } from '../deployment/deployment.ts';
import { checkBodies } from '../deployment/invoke.ts';
import { placeOf } from '../deployment/place.ts';
import { eachOf } from '../deployment/rows-reader.ts';
import { requireNotPaused } from '../reports/checks/pauses.ts';
import { choose, type DeadLetterChoice } from '../reports/dead-letters/choice.ts';
import { verboseOption } from '../reports/dead-letters/dead-letter-text.ts';
import {
  type DeadLetter,
  type DeadLetterSource,
  deadLetterSource,
  putBack,
} from '../reports/dead-letters/dead-letters.ts';
import { lowestFirst } from '../reports/dead-letters/redrive-order.ts';
import { judgeDeadLetters } from '../reports/dead-letters/redrive-plan.ts';
import { orderReader } from '../reports/order/order-of-aggregate.ts';
import { countArgument, durationArgument, SOURCE_ARGUMENT } from '../terminal/arguments.ts';
import { type ChangeOptions, type PlannedVerdicts, reasonOption, reasonToApply } from '../terminal/change.ts';
import { EXIT, type Io } from '../terminal/io.ts';
import { many } from '../terminal/output.ts';
import { type Report, reportOf } from '../terminal/terminal.ts';
import { reporting } from './command.ts';
import { sweep } from './sweep.ts';

interface RedriveOptions extends ChangeOptions, DeadLetterChoice {
  readonly source: string;
  readonly limit?: number | undefined;
  /** Dead letters per second. @default 10 */
  readonly rate?: number;
  readonly wait?: number;
  readonly verbose?: boolean;
}

/** The default of `--limit`. */
const LIMIT = 1_000;

/** If the command dies, dead letters reappear after this many seconds. */
const REDRIVE_HIDES_S = 900;
const PLAN_HIDES_S = 30;

/** The defaults of `--wait`: a consumer starts at once; DEAD events wait for the sweep, which runs every minute. */
const WAIT_MS = 60_000;
const DEAD_WAIT_MS = 180_000;

const RATE_PER_S = 10;

/** `mailroom dlq redrive`. */
export function redriveCommand(io: Io): Command {
  return new Command('redrive')
    .description(
      'Shows what a redrive would do to each dead letter. With --apply, redrives those that would run again.',
    )
    .argument('<source>', SOURCE_ARGUMENT)
    .argument('[id...]', 'only these dead letters: their ids or event ids, or the first 8 or more characters')
    .option('--apply', 'redrive: 1 dead letter, then 10, then the rest, until one fails again')
    .option('--cause <text>', 'only dead letters with this text in their cause (any case)')
    .option('--limit <count>', `at most this many dead letters (default: ${LIMIT})`, countArgument)
    .option('--rate <count/s>', 'at most this many dead letters per second', rateArgument, RATE_PER_S)
    .option(
      '--wait <duration>',
      'stop if none was processed for this long (default: 60s; DEAD events: 180s)',
      durationArgument,
    )
    .addOption(reasonOption())
    .addOption(verboseOption())
    .action(reporting(io, redrive, 'source', 'ids'));
}

/**
 * Plans a redrive; with `apply`, makes it.
 *
 * @param planned - the plan that was confirmed @default the options alone decide
 */
export async function redrive(
  deployment: Deployment,
  options: RedriveOptions,
  planned?: PlannedVerdicts,
): Promise<Report<ReturnType<typeof redriveJson>>> {
  const reason = reasonToApply(options);
  const source = deadLetterSource(deployment.directory, options.source);
  if (reason !== undefined && source.kind !== 'dead' && source.kind !== 'stream')
    await requireNotPaused(deployment, source.consumer);
  const plan = await planRedrive(deployment, source, options, planned);
  const touched = reason === undefined ? [] : plan.judged.filter(isTouched);
  await putBack(deployment.queues, source, others(plan, touched));
  if (reason === undefined)
    return reportOf(redriveJson(plan), plan, (seen) => planText(deployment, seen, withoutDefaults(options)));
  try {
    return await applyPlan(deployment, plan, { ...options, reason });
  } finally {
    await putBack(deployment.queues, source, touched);
  }
}

async function planRedrive(
  deployment: Deployment,
  source: DeadLetterSource,
  { ids, cause, apply, limit = LIMIT }: RedriveOptions,
  planned: PlannedVerdicts | undefined,
): Promise<RedrivePlan> {
  const { table, queues, clock, clients } = deployment;
  const place = await placeOf(deployment);
  const hideS = apply ? REDRIVE_HIDES_S : PLAN_HIDES_S;
  const received = await receiveForChange(deployment, source, { limit, hideS, planned });
  try {
    const { chosen, choice } = choose(deployment, source, received.deadLetters, { ids, cause }, planned);
    const judged = await judgeDeadLetters(
      {
        table,
        check: (consumer, bodies) => checkBodies(clients.lambda, consumer, bodies),
        now: clock.now(),
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

/** The dead letters that this redrive does not touch, which are shown again at once. */
function others({ received }: RedrivePlan, touched: readonly DeadLetter[]): DeadLetter[] {
  const ids = new Set(touched.map(({ id }) => id));
  return received.deadLetters.filter(({ id }) => !ids.has(id));
}

async function applyPlan(
  deployment: Deployment,
  plan: RedrivePlan,
  options: RedriveOptions & { readonly reason: string },
): Promise<Report<ReturnType<typeof redriveJson>>> {
  const { terminal, queues, clock } = deployment;
  const { signal } = terminal;
  const { source, judged } = plan;
  const handled = judged.filter(({ verdict }) => verdict === 'handled');
  const runs = lowestFirst(judged.filter(({ verdict }) => verdict === 'runs'));
  const note = { by: await deployment.operator(), reason: options.reason };
  if (handled.length + runs.length > 0) {
    // Recorded before it is done, so it names the order and not its outcome.
    const deleted = handled.length === 0 ? '' : `, deletion of ${handled.length} already handled`;
    const subject = `${source.name}: redrive of ${many(runs.length, 'dead letter')}${deleted}`;
    await recordOperation(deployment, { ...note, command: 'dlq redrive', subject });
  }
  if (source.kind === 'dead' && runs.length > 0)
    terminal.say('The sweep publishes the events: each of the three steps can take a minute.');
  await settleUnreadable(deployment, source, handled, note);
  // The inbox would only absorb them.
  await eachOf(handled, async ({ received }) => {
    if (source.kind !== 'dead' && received !== undefined) await queues.remove(source.url, received);
  });
  const redriver = redriverOf(
    {
      ...deployment,
      sweep: (range) => sweep(deployment, { ...range, until: Math.min(range.until, clock.now()) }),
    },
    source,
    note,
  );
  const redriven = await redriveInSteps({ clock, signal, progress: terminal.progress }, runs, redriver, {
    ratePerS: options.rate ?? RATE_PER_S,
    waitMs: options.wait ?? (source.kind === 'dead' ? DEAD_WAIT_MS : WAIT_MS),
  });
  const ended = [...redriven.done, ...redriven.handled];
  await settleUnreadable(deployment, source, ended, note);
  const isDone = handled.length + ended.length === judged.length + (plan.changed ?? []).length;
  const interrupted = signal.aborted;
  return reportOf(
    redriveJson(plan, redriven),
    { plan, redriven },
    (seen) =>
      redrivenText(deployment, seen.plan, seen.redriven, { ...withoutDefaults(options), interrupted }),
    interrupted ? EXIT.stopped : isDone ? EXIT.ok : EXIT.attention,
  );
}

/** The options as a printed command repeats them. */
function withoutDefaults({ rate, ...options }: RedriveOptions) {
  return { ...options, rate: rate === RATE_PER_S ? undefined : rate };
}

function rateArgument(text: string): number {
  const [, count] = /^(\d{1,4})(?:\/s)?$/.exec(text) ?? [];
  if (count !== undefined && Number(count) >= 1) return Number(count);
  throw new InvalidArgumentError(
    'Expected a whole number of dead letters per second from 1 to 9999, such as 10/s.',
  );
}
