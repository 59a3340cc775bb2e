import { readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { placeText } from '../../deployment/place.ts';
import { verdictWords } from '../../reports/dead-letters/verdict-words.ts';
import { applyWords, type ChangeOptions } from '../../terminal/change.ts';
import { clipped, table } from '../../terminal/output.ts';
import { prose } from '../../terminal/prose.ts';
import { type ShellText, shell } from '../../terminal/shell.ts';
import type { Outcome } from '../change.ts';
import type { Redriven } from '../redrive/redrive-steps.ts';
import type { DataChange } from './data-changes.ts';
import type { ResendPlan } from './resend-plan.ts';
import { NEVER_RAN } from './send-in-place.ts';

export interface ResendOptions extends ChangeOptions {
  readonly source: string;
  readonly id: string;
  /** The file of the new data, which a printed command repeats. */
  readonly data: string;
  /** Reads it: JSON. */
  readonly readData: () => Promise<string>;
  readonly payload?: boolean;
  readonly repeatEffects?: boolean;
  /** Milliseconds. */
  readonly wait?: number;
}

/** A plan, compared with the one that was confirmed. */
export interface ConfirmedResend extends ResendPlan {
  /** Its verdict is another one: nothing is sent. */
  readonly isChanged: boolean;
}

/** A resend that was made. */
export interface SentResend {
  /** `undefined` if nothing was sent. */
  readonly redriven: Redriven | undefined;
}

/** A resend, planned or made. */
type ResendResult = Outcome<ConfirmedResend, SentResend>;

type Lines = Pick<Deployment, 'commandLine'>;

type ResendOutcome = 'processed' | 'superseded' | 'failed-again' | 'waiting' | 'untried' | 'kept' | 'changed';

/** The document of `--json`. Values of the data are in it only with `--payload`. */
export function resendJson(deployment: Lines, report: ResendResult, { payload = false }: ResendOptions) {
  const { plan, made } = report;
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
    applied: made !== undefined,
    verdict: judged.verdict,
    code: judged.code ?? null,
    message: judged.message ?? null,
    changes: changes.map(({ path, change, before, after }) => ({
      path,
      change,
      ...(payload && { before: before ?? null, after: after ?? null }),
    })),
    ...(made && {
      outcome: outcomeOf(report),
      failedAgain: made.redriven?.back[0]?.fingerprint ?? null,
      next: next === undefined ? null : deployment.commandLine(next),
    }),
  };
}

/** The result for the new event. `superseded`: another operator discarded, replaced or passed over it before it ran. */
export function outcomeOf({ plan, made }: ResendResult): ResendOutcome {
  if (plan.isChanged) return 'changed';
  const { redriven } = made ?? {};
  const { verdict } = plan.judged;
  if (redriven === undefined) {
    if (verdict === 'superseded') return verdict;
    return verdict === 'handled' ? endOf(plan) : 'kept';
  }
  if (redriven.done.length > 0) return 'processed';
  if (redriven.back.length > 0) return redriven.back[0]?.neverRan ? 'superseded' : 'failed-again';
  // Sent, and tried again by its consumer if it failed.
  const isSent = redriven.waiting.length > 0 || (redriven.retrying ?? []).length > 0;
  return isSent ? 'waiting' : 'untried';
}

function endOf({ judged: { row } }: ResendPlan): ResendOutcome {
  return readable(row)?.status === 'PROCESSED' ? 'processed' : 'superseded';
}

/** The command that comes after a resend. */
function nextCommand(report: ResendResult): ShellText | undefined {
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
const REMOVAL = 'You can remove the dead letter now. To plan its removal:';

/** A resend as text: the changes, the verdict, and the command that applies the plan or comes after it. */
export function resendText(deployment: Lines, report: ResendResult, options: ResendOptions): string {
  const { place, source, deadLetter, eventId, changes, judged } = report.plan;
  const { verdict, code, message } = judged;
  const why = [code, message].filter((part) => part !== undefined).join(': ');
  const { label } = verdictWords(verdict, source.name);
  const said = `${label}${why === '' ? '' : `: ${clipped(why)}`}`;
  return [
    prose(placeText(place)),
    `${clipped(deadLetter.type ?? 'Event')} ${eventId} at ${source.consumer.name}`,
    ...inPlaceText(report.plan),
    `  as ${judged.eventId}`,
    changesText(changes, options.payload ?? false),
    ...(report.made?.redriven === undefined ? [prose(`verdict: ${said}`)] : []),
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
  report: ResendResult,
  { data, reason, repeatEffects = false }: ResendOptions,
): string[] {
  const { source, deadLetter, judged } = report.plan;
  if (report.made !== undefined) {
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
