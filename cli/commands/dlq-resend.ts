import { Command } from 'commander';
import { readable } from '../../lambdas/runtime/store/stored-rows.ts';
import type { Redriven } from '../changes/redrive/redrive-steps.ts';
import type { DataChange } from '../changes/resend/data-changes.ts';
import { consumerSource, newData, planResend, type ResendPlan } from '../changes/resend/resend-plan.ts';
import { findToResend, NEVER_RAN, resend } from '../changes/resend/send-in-place.ts';
import type { Deployment } from '../deployment/deployment.ts';
import { placeText } from '../deployment/place.ts';
import { requireNotPaused } from '../reports/checks/pauses.ts';
import { deadLetterSource } from '../reports/dead-letters/dead-letters.ts';
import { durationArgument, onceArgument } from '../terminal/arguments.ts';
import {
  applyWords,
  type ChangeOptions,
  type PlannedVerdicts,
  reasonOption,
  reasonToApply,
} from '../terminal/change.ts';
import { EXIT, fileText, type Io } from '../terminal/io.ts';
import { clipped, table } from '../terminal/output.ts';
import { prose } from '../terminal/prose.ts';
import { type ShellText, shell } from '../terminal/shell.ts';
import { reportOf } from '../terminal/terminal.ts';
import { reporting } from './command.ts';

interface ResendOptions extends ChangeOptions {
  readonly source: string;
  readonly id: string;
  /** The file of the new data, which a printed command repeats. */
  readonly data: string;
  readonly payload?: boolean;
  readonly repeatEffects?: boolean;
  /** Milliseconds. */
  readonly wait?: number;
}

/** `mailroom dlq resend`. */
export function resendCommand(io: Io): Command {
  return new Command('resend')
    .description(
      'Shows what the event of a dead letter would be with other data. With --apply, sends that as a new event to the consumer of the ' +
        'dead letter only; the old event never runs there again.',
    )
    .argument('<source>', 'rule:<consumer> or consumer:<consumer>')
    .argument('<id>', 'the id of the dead letter or of its event, or the first 8 or more characters')
    .requiredOption(
      '--data <file>',
      'the whole new data of the event, as JSON; - reads standard input',
      onceArgument,
    )
    .option('--apply', 'send it')
    .addOption(reasonOption())
    .option(
      '--wait <duration>',
      'wait at most this long until it is processed (default: 60s)',
      durationArgument,
    )
    .option(
      '--repeat-effects',
      'also if side effects of the old event have started: they run again under new keys',
    )
    .option('--payload', 'add the values to the changes')
    .action(
      reporting<ResendOptions>(
        io,
        (deployment, options) =>
          resendDeadLetter(deployment, options, () => fileText(io, '--data', options.data)),
        'source',
        'id',
      ),
    );
}

/**
 * Plans to send the event of a dead letter with other data; with `apply`, sends it.
 *
 * @param readData - reads the whole new data of the event, JSON
 * @param planned - the plan that was confirmed @default the options alone decide
 */
export async function resendDeadLetter(
  deployment: Deployment,
  options: ResendOptions,
  readData: () => Promise<string>,
  planned?: PlannedVerdicts,
) {
  const reason = reasonToApply(options);
  const source = consumerSource(deadLetterSource(deployment.directory, options.source));
  if (reason !== undefined) await requireNotPaused(deployment, source.consumer);
  const data = newData(await readData());
  const deadLetter = await findToResend(deployment, source, options.id);
  const { repeatEffects } = options;
  const plan = await planResend(deployment, source, deadLetter, { data, repeatEffects });
  const { judged } = plan;
  const isChanged = planned !== undefined && planned.get(judged.eventId) !== judged.verdict;
  const sends = reason !== undefined && judged.verdict === 'runs' && !isChanged;
  const redriven: Redriven | undefined = sends
    ? await resend(deployment, plan, { by: await deployment.operator(), reason }, options.wait)
    : undefined;
  const report = { plan, applied: reason !== undefined, isChanged, redriven };
  const isStopped = redriven !== undefined && deployment.terminal.signal.aborted;
  const isFine = outcomeOf(report) === 'processed' || (reason === undefined && judged.verdict === 'runs');
  return reportOf(
    resendJson(deployment, report, options),
    report,
    (seen) => resendText(deployment, seen, options),
    isStopped ? EXIT.stopped : isFine ? EXIT.ok : EXIT.attention,
  );
}

/** A resend, planned or applied. */
interface ResendReport {
  readonly plan: ResendPlan;
  readonly applied: boolean;
  /** Its verdict is not that of the plan that was confirmed: nothing was sent. */
  readonly isChanged: boolean;
  /** `undefined` if nothing was sent. */
  readonly redriven: Redriven | undefined;
}

type Lines = Pick<Deployment, 'commandLine'>;

type ResendOutcome = 'processed' | 'superseded' | 'failed-again' | 'waiting' | 'untried' | 'kept' | 'changed';

/** The document of `--json`. Values of the data are in it only with `--payload`. */
function resendJson(deployment: Lines, report: ResendReport, { payload = false }: ResendOptions) {
  const { plan, applied, redriven } = report;
  const { place, source, deadLetter, eventId, replaced, changes, judged } = plan;
  const next = nextCommand(report);
  return {
    ...place,
    source: source.name,
    consumer: source.consumer.name,
    id: deadLetter.id,
    eventId,
    replacedEventId: replaced.eventId,
    type: deadLetter.type ?? null,
    newEventId: judged.eventId,
    applied,
    verdict: judged.verdict,
    code: judged.code ?? null,
    message: judged.message ?? null,
    changes: changes.map(({ path, change, before, after }) => ({
      path,
      change,
      ...(payload && { before: before ?? null, after: after ?? null }),
    })),
    ...(applied && {
      outcome: outcomeOf(report),
      failedAgain: redriven?.back[0]?.fingerprint ?? null,
      next: next === undefined ? null : deployment.commandLine(next),
    }),
  };
}

/** The result for the new event. `superseded`: another operator discarded, replaced or passed over it before it ran. */
function outcomeOf({ plan, isChanged, redriven }: ResendReport): ResendOutcome {
  if (isChanged) return 'changed';
  const { verdict } = plan.judged;
  if (redriven === undefined) {
    if (verdict === 'superseded') return verdict;
    return verdict === 'handled' ? endOf(plan) : 'kept';
  }
  if (redriven.done.length > 0) return 'processed';
  if (redriven.back.length > 0) return redriven.back[0]?.neverRan ? 'superseded' : 'failed-again';
  return redriven.waiting.length > 0 ? 'waiting' : 'untried';
}

function endOf({ judged: { row } }: ResendPlan): ResendOutcome {
  return readable(row)?.status === 'PROCESSED' ? 'processed' : 'superseded';
}

/** The command that comes after a resend. */
function nextCommand(report: ResendReport): ShellText | undefined {
  const { source, deadLetter, judged } = report.plan;
  const outcome = outcomeOf(report);
  if (outcome === 'processed')
    return deadLetter.isGone === true ? undefined : shell`dlq discard ${source.name} ${deadLetter.id}`;
  if (outcome === 'waiting' || outcome === 'failed-again' || outcome === 'superseded')
    return shell`why ${judged.eventId}`;
  return undefined;
}

/** The words for each outcome. */
const OUTCOMES: Readonly<Record<ResendOutcome, string>> = {
  processed: 'The new event is processed.',
  superseded: `${NEVER_RAN}. For details:`,
  'failed-again': 'The new event was sent, and failed. For details:',
  waiting: 'The new event was sent and is not processed yet. For details:',
  untried: 'Stopped before it was sent. Repeat the command.',
  kept: 'Nothing was sent.',
  changed: 'Nothing was sent: the verdict has changed since the plan.',
};

/** The hint to the dead letter that a resend has made superfluous. */
const REMOVAL = 'The dead letter is no longer needed. To plan its removal:';

/** A resend as text: the changes, the verdict, and the command that applies the plan or comes after it. */
function resendText(deployment: Lines, report: ResendReport, options: ResendOptions): string {
  const { place, source, deadLetter, eventId, changes, judged } = report.plan;
  const { verdict, code, message } = judged;
  const why = [code, message].filter((part) => part !== undefined).join(': ');
  const said = verdict === 'runs' ? 'would run' : `${verdict}${why === '' ? '' : `: ${clipped(why)}`}`;
  return [
    prose(placeText(place)),
    `${clipped(deadLetter.type ?? 'Event')} ${eventId} at ${source.consumer.name}`,
    ...inPlaceText(report.plan),
    `  as ${judged.eventId}`,
    changesText(changes, options.payload ?? false),
    ...(report.redriven === undefined ? [prose(`verdict: ${said}`)] : []),
    ...endText(deployment, report, options),
  ].join('\n');
}

/** Names the replacement that is replaced; nothing if it is the event of the dead letter. */
function inPlaceText({ source, eventId, replaced }: ResendPlan): string[] {
  if (replaced.eventId === eventId) return [];
  const which =
    replaced.row === undefined ? `which ${source.consumer.name} has not received` : 'an earlier replacement';
  return [prose(`  in place of ${replaced.eventId}, ${which}`)];
}

function endText(
  { commandLine }: Lines,
  report: ResendReport,
  { data, reason, repeatEffects = false }: ResendOptions,
): string[] {
  const { source, deadLetter, judged } = report.plan;
  if (report.applied) {
    const next = nextCommand(report);
    const outcome = outcomeOf(report);
    const removes = outcome === 'processed' && next !== undefined ? ` ${REMOVAL}` : '';
    return [prose(OUTCOMES[outcome] + removes), ...(next === undefined ? [] : [`  ${commandLine(next)}`])];
  }
  if (judged.verdict === 'fails')
    return [prose('Nothing was changed. Correct the data, and repeat the command.')];
  if (judged.verdict !== 'runs') return ['Nothing was changed.'];
  const words = [
    source.name,
    deadLetter.id,
    '--data',
    data,
    ...(repeatEffects ? ['--repeat-effects'] : []),
    ...applyWords({ reason }),
  ];
  return [
    prose(`Nothing was changed. To send it to ${source.consumer.name} only:`),
    `  ${commandLine(shell`dlq resend ${words}`)}`,
  ];
}

function changesText(changes: readonly DataChange[], payload: boolean): string {
  const shown = (value: unknown) => (value === undefined ? '-' : clipped(JSON.stringify(value)));
  return table(
    ['change', 'data', ...(payload ? ['before', 'after'] : [])],
    changes.map(({ path, change, before, after }) => [
      change,
      clipped(path === '' ? '(all of it)' : path),
      ...(payload ? [shown(before), shown(after)] : []),
    ]),
  );
}
