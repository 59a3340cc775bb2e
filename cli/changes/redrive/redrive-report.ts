import type { Deployment } from '../../deployment/deployment.ts';
import { type Place, placeText } from '../../deployment/place.ts';
import { choiceWords, type DeadLetterChoice } from '../../reports/dead-letters/choice.ts';
import { deadLetterJson, isGrouped } from '../../reports/dead-letters/dead-letter-text.ts';
import type { DeadLetterSource, ReceivedDeadLetters } from '../../reports/dead-letters/dead-letters.ts';
import { judgedText } from '../../reports/dead-letters/judged-text.ts';
import { orderText } from '../../reports/dead-letters/redrive-order.ts';
import {
  type JudgedDeadLetter,
  REDRIVE_VERDICTS,
  type RedriveVerdict,
} from '../../reports/dead-letters/redrive-plan.ts';
import { type RemedyDeps, remediesText } from '../../reports/dead-letters/remedies.ts';
import { applyWords, type ChangeOptions } from '../../terminal/change.ts';
import { many } from '../../terminal/output.ts';
import { prose } from '../../terminal/prose.ts';
import { shell } from '../../terminal/shell.ts';
import type { ChangedDeadLetter } from '../planned-dead-letters.ts';
import { causeOutcomes, outcomesOf } from './redrive-outcomes.ts';
import { causeOf } from './redrive-run.ts';
import type { Redriven } from './redrive-steps.ts';

/** The plan of a redrive. */
export interface RedrivePlan {
  readonly place: Place;
  readonly source: DeadLetterSource;
  /** The selected dead letters. */
  readonly judged: readonly JudgedDeadLetter[];
  /** The dead letters of a confirmed plan that it no longer describes: left alone. @default none */
  readonly changed?: readonly ChangedDeadLetter[];
  readonly received: ReceivedDeadLetters;
  readonly choice: DeadLetterChoice;
}

/** The document of `--json`: a plan, and with `redriven` its outcome. */
export function redriveJson(
  { place, source, judged, changed = [], received }: RedrivePlan,
  redriven?: Redriven,
) {
  const outcomeOf = redriven && outcomesOf(redriven);
  return {
    ...place,
    source: source.name,
    count: received.total,
    applied: redriven !== undefined,
    ...(redriven && {
      stopped: isStopped(redriven),
      processed: redriven.done.length,
      superseded: redriven.superseded.length,
      causes: causeOutcomes(judged, redriven),
    }),
    verdicts: counts(judged),
    deadLetters: [
      ...judged.map((deadLetter) => ({
        ...deadLetterJson(deadLetter),
        verdict: deadLetter.verdict,
        ...detailOf(deadLetter, redriven),
        ...outcomeOf?.(deadLetter),
      })),
      ...changed.map(changedJson),
    ],
  };
}

/** The details of a verdict, or of a send that failed. */
function detailOf(deadLetter: JudgedDeadLetter, redriven: Redriven | undefined) {
  const failed = redriven?.failed?.find((one) => one.deadLetter === deadLetter);
  const { code = null, message = null } = failed ?? deadLetter;
  return { code, message };
}

/** A dead letter that a confirmed plan no longer describes, as in the document of `--json`. */
function changedJson({ deadLetter, text }: ChangedDeadLetter) {
  return {
    ...deadLetterJson(deadLetter),
    verdict: null,
    code: 'CHANGED_SINCE_PLAN',
    message: text,
    outcome: 'changed',
    failedAgain: null,
    notTried: null,
  };
}

/** The options that a plan repeats in the command that applies it. */
export interface RedrivePlanOptions extends Pick<ChangeOptions, 'reason'> {
  readonly limit?: number | undefined;
  readonly verbose?: boolean;
  /** Per second. @default the default of `--rate` */
  readonly rate?: number | undefined;
  /** Milliseconds. @default the default of `--wait` */
  readonly wait?: number | undefined;
  /** @default false */
  readonly keepGoing?: boolean | undefined;
}

/** The command that redrives these dead letters. */
export function applyLine(
  { commandLine }: Pick<Deployment, 'commandLine'>,
  name: string,
  choice: DeadLetterChoice,
  { limit, rate, wait, keepGoing = false, reason }: RedrivePlanOptions,
): string {
  const pace = [
    ...(limit === undefined ? [] : ['--limit', String(limit)]),
    ...(rate === undefined ? [] : ['--rate', String(rate)]),
    ...(wait === undefined ? [] : ['--wait', `${Math.ceil(wait / 1_000)}s`]),
    ...(keepGoing ? ['--keep-going'] : []),
  ];
  return `  ${commandLine(shell`dlq redrive ${[name, ...choiceWords(choice), ...pace, ...applyWords({ reason })]}`)}`;
}

/** The plan as text. */
export function planText(
  deployment: RemedyDeps,
  plan: RedrivePlan,
  options: RedrivePlanOptions = {},
): string {
  return [prose(placeText(plan.place)), ...plannedText(deployment, plan, options)].join('\n');
}

function plannedText(
  deployment: RemedyDeps,
  { source, judged, received, choice }: RedrivePlan,
  options: RedrivePlanOptions,
): string[] {
  const { deadLetters, total } = received;
  if (total === 0) return [`${source.name} is empty.`];
  if (deadLetters.length === 0)
    return [
      prose(
        `None of the ${many(total, 'dead letter')} of ${source.name} is visible, because another command is reading them. Try again in a moment.`,
      ),
    ];
  if (judged.length === 0)
    return [`None of the ${many(deadLetters.length, 'dead letter')} of ${source.name} matches.`];
  const { runs, handled } = counts(judged);
  const running = judged.filter(({ verdict }) => verdict === 'runs');
  const causes = new Set(running.map(causeOf));
  const todo = [
    ...(runs > 0 ? [`${runs} would run again`] : []),
    ...(handled > 0 ? [`${handled} would be deleted as already handled`] : []),
  ];
  return [
    `${source.name}: ${judged.length} of ${many(total, 'dead letter')}`,
    judgedText(source, judged, deployment.clock.now(), isGrouped(judged.length, options)),
    ...remediesText(deployment, source, judged, received.deadLetters),
    ...orderText(running).map((text) => prose(text)),
    ...(causes.size < 2
      ? []
      : [
          prose(
            `The ${runs} that would run have ${causes.size} causes. Of each, 1 runs first, then 10, then the rest, and a cause that fails again is left out.`,
          ),
        ]),
    ...(todo.length === 0
      ? ['There is nothing to redrive.']
      : [
          prose(`${todo.join(', ')}. Nothing was changed. To redrive:`),
          applyLine(deployment, source.name, choice, options),
        ]),
  ];
}

function isStopped({ back, retrying = [], failed = [], waiting, untried }: Redriven): boolean {
  return back.length + retrying.length + failed.length + waiting.length + untried.length > 0;
}

/** The dead letters of each verdict. */
export function counts(judged: readonly JudgedDeadLetter[]): Record<RedriveVerdict, number> {
  const entries = REDRIVE_VERDICTS.map((wanted) => [
    wanted,
    judged.filter(({ verdict }) => verdict === wanted).length,
  ]);
  return Object.fromEntries(entries) as Record<RedriveVerdict, number>;
}
