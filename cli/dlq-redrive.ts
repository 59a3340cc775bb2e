import { Command, InvalidArgumentError } from 'commander';
import type { Queues } from '../lambdas/runtime/operations/queues.ts';
import type { SweepRange } from '../lambdas/runtime/relay/sweep-range.ts';
import { type Note, recordOperation } from '../lambdas/runtime/store/operation-record.ts';
import { countArgument, durationArgument, reasonArgument } from './frame/arguments.ts';
import { withSession } from './frame/command.ts';
import { EXIT, type ExitCode } from './frame/exit-code.ts';
import { checkBodies } from './frame/invoke.ts';
import type { Io } from './frame/io.ts';
import type { Session } from './frame/session.ts';
import { choose, type LetterChoice } from './letters/letter-choice.ts';
import { type JudgedLetter, judgeLetters } from './letters/letter-verdict.ts';
import {
  type DeadItem,
  type DeathPlace,
  deathPlace,
  type Letters,
  putBack,
  takeLetters,
} from './letters/letters.ts';
import { startMove } from './letters/move-task.ts';
import { planJson, planText, redrivenJson, redrivenText } from './letters/redrive-report.ts';
import { type Redriven, type Redriver, redriveInSteps } from './letters/redrive-steps.ts';
import { deadRedriver, queueRedriver, streamRedriver, tellAudit } from './letters/redrivers.ts';
import { eachOf } from './reading/rows-reader.ts';
import { sweep } from './sweep.ts';

interface RedriveOptions extends LetterChoice {
  readonly apply?: boolean;
  readonly limit?: number;
  readonly rate: number;
  readonly wait?: number;
  readonly reason: string;
}

/** At most so many letters are looked at, unless `--limit` says otherwise. */
const LIMIT = 1_000;

/** While letters are redriven they are hidden; so long if the command dies. Seconds. */
const REDRIVE_HIDES_S = 900;
const PLAN_HIDES_S = 30;

/** How long to wait for a step: a consumer works at once, DEAD events wait for the sweep, which runs every minute. */
const WAIT_MS = 60_000;
const DEAD_WAIT_MS = 180_000;

const RATE_PER_S = 10;

/** `mailroom dlq redrive`. */
export function redriveCommand(io: Io): Command {
  return new Command('redrive')
    .description(
      'Says what would become of each letter; with --apply it redrives those that would run again.',
    )
    .argument('<place>', 'dead, stream, rule:<consumer> or consumer:<consumer>')
    .option('--apply', 'do it: 1 letter, then 10, then the rest, as long as none fails again')
    .option('--cause <text>', 'only letters with this text in their cause')
    .option('--letter <id...>', 'only these: ids of letters or of events')
    .option('--limit <count>', `at most so many letters (looked at without it: ${LIMIT})`, countArgument)
    .option('--rate <count/s>', 'at most so many letters a second', rateArgument, RATE_PER_S)
    .option(
      '--wait <duration>',
      'stop when none was processed for so long (default: 60s; of DEAD events 180s)',
      durationArgument,
    )
    .option('--reason <text>', 'why; stored with the change', reasonArgument, 'not given')
    .action(
      withSession<[string], RedriveOptions>(io, async (session, options, name) => {
        const place = deathPlace(session.directory, name);
        const taken = await takeLetters(session, place, {
          limit: options.limit ?? LIMIT,
          hideS: options.apply ? REDRIVE_HIDES_S : PLAN_HIDES_S,
        });
        const hidden = new Set<DeadItem>(taken.letters);
        try {
          const plan = await judgeLetters(
            {
              table: session.table,
              check: (consumer, bodies) => checkBodies(session.lambda, consumer, bodies),
              now: session.clock.now(),
            },
            place,
            choose(place, taken.letters, options),
          );
          if (options.apply) return await apply(session, place, plan, taken, hidden, options);
          session.output.result(planJson(place, plan, taken.total), { place, plan, taken, options }, (seen) =>
            planText(session, seen.place, seen.plan, seen.taken, seen.options),
          );
          return EXIT.ok;
        } finally {
          await putBack(session.queues, place, [...hidden]);
        }
      }),
    );
}

async function apply(
  session: Session,
  place: DeathPlace,
  plan: readonly JudgedLetter[],
  taken: Letters,
  hidden: Set<DeadItem>,
  options: RedriveOptions,
): Promise<ExitCode> {
  const { output, signal, queues } = session;
  const handled = plan.filter(({ verdict }) => verdict === 'handled');
  const runs = plan.filter(({ verdict }) => verdict === 'runs');
  const note = { by: await session.operator(), reason: options.reason };
  if (handled.length + runs.length > 0) {
    const subject = `${place.place}: ${runs.length} to redrive, ${handled.length} handled to delete`;
    await recordOperation(session, { ...note, command: 'dlq redrive', subject });
  }
  if (place.kind === 'dead' && runs.length > 0)
    output.say('The sweep publishes them: that may take a minute for each of the three steps.');
  await showOthers(queues, place, hidden, [...handled, ...runs]);
  // The inbox would only absorb them.
  await eachOf(handled, async ({ received }) => {
    if (place.kind !== 'dead' && received !== undefined) await queues.remove(place.url, received);
  });
  const isWhole =
    options.cause === undefined &&
    options.letter === undefined &&
    options.limit === undefined && // how many there are is approximate: a move could take more
    taken.letters.length === taken.total &&
    handled.length + runs.length === plan.length;
  const redriven = await redriveInSteps(
    { clock: session.clock, signal, progress: output.progress },
    runs,
    redriverOf(session, place, note, isWhole ? hidden : undefined),
    {
      ratePerS: options.rate,
      waitMs: options.wait ?? (place.kind === 'dead' ? DEAD_WAIT_MS : WAIT_MS),
    },
  );
  hidden.clear();
  for (const letter of [...redriven.untried, ...redriven.back.map((back) => back.letter)]) hidden.add(letter);
  output.result(redrivenJson(place, plan, taken.total, redriven), { place, plan, redriven }, (seen) =>
    redrivenText(session, seen.place, seen.plan, seen.redriven),
  );
  return exitOf(plan, redriven, signal);
}

/** Nobody has to wait for letters that this redrive does not touch. */
async function showOthers(
  queues: Queues,
  place: DeathPlace,
  hidden: Set<DeadItem>,
  touched: readonly DeadItem[],
): Promise<void> {
  const ids = new Set(touched.map(({ id }) => id));
  const others = [...hidden].filter(({ id }) => !ids.has(id));
  await putBack(queues, place, others);
  for (const letter of others) hidden.delete(letter);
}

/** All well when nothing of the plan is dead any more. */
function exitOf(plan: readonly JudgedLetter[], { done }: Redriven, signal: AbortSignal): ExitCode {
  if (signal.aborted) return EXIT.stopped;
  const handled = plan.filter(({ verdict }) => verdict === 'handled').length;
  return handled + done.length === plan.length ? EXIT.ok : EXIT.attention;
}

/** @param whole - the letters that are hidden, where the whole queue is meant */
function redriverOf(
  session: Session,
  place: DeathPlace,
  note: Note,
  whole: Set<DeadItem> | undefined,
): Redriver {
  if (place.kind === 'dead') return deadRedriver(session, note);
  if (place.kind === 'stream') {
    const upToNow = ({ since, until }: SweepRange) =>
      sweep(session, { since, until: Math.min(until, session.clock.now()) });
    return streamRedriver({ queues: session.queues, sweep: upToNow }, place);
  }
  if (place.kind === 'rule' || whole === undefined) return queueRedriver(session, place);
  return queueRedriver(session, place, async (ratePerS) => {
    const { queues } = session;
    const [from, to] = await Promise.all(
      [place.url, place.consumer?.queue ?? ''].map(async (url) => (await queues.depth(url)).arn),
    );
    if (from === undefined || to === undefined) return false;
    await eachOf([...whole], (letter) => tellAudit(session, letter));
    // A move takes only what it can see. Where it cannot be made, a letter that is seen can still be deleted.
    await putBack(queues, place, [...whole]);
    whole.clear();
    return startMove(session, { from, to, ratePerS });
  });
}

function rateArgument(text: string): number {
  const [, count] = /^(\d{1,4})(?:\/s)?$/.exec(text) ?? [];
  if (count !== undefined && Number(count) >= 1) return Number(count);
  throw new InvalidArgumentError('It must be a whole number of letters a second, from 1 to 9999, like 10/s.');
}
