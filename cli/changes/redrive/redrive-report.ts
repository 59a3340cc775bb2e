import type { Deployment } from '../../deployment/deployment.ts';
import { type Place, placeText } from '../../deployment/place.ts';
import { choiceWords, type DeadLetterChoice } from '../../reports/dead-letters/choice.ts';
import { deadLetterJson, isGrouped } from '../../reports/dead-letters/dead-letter-text.ts';
import type {
  DeadLetter,
  DeadLetterSource,
  ReceivedDeadLetters,
} from '../../reports/dead-letters/dead-letters.ts';
import { judgedText } from '../../reports/dead-letters/judged-text.ts';
import { orderText } from '../../reports/dead-letters/redrive-order.ts';
import {
  type JudgedDeadLetter,
  REDRIVE_VERDICTS,
  type RedriveVerdict,
} from '../../reports/dead-letters/redrive-plan.ts';
import { type RemedyDeps, remediesText } from '../../reports/dead-letters/remedies.ts';
import { applyWords, type ChangeOptions } from '../../terminal/change.ts';
import { clipped, many } from '../../terminal/output.ts';
import { paint } from '../../terminal/paint.ts';
import { prose } from '../../terminal/prose.ts';
import { shell } from '../../terminal/shell.ts';
import type { ChangedDeadLetter } from '../planned-dead-letters.ts';
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

/** The outcome for a dead letter of the plan. */
type RedriveOutcome =
  | 'processed'
  | 'superseded'
  | 'deleted'
  | 'failed-again'
  | 'failed'
  | 'waiting'
  | 'untried'
  | 'kept';

/** The document of `--json`: a plan, and with `redriven` its outcome. */
export function redriveJson(
  { place, source, judged, changed = [], received }: RedrivePlan,
  redriven?: Redriven,
) {
  return {
    ...place,
    source: source.name,
    count: received.total,
    applied: redriven !== undefined,
    ...(redriven && {
      stopped: isStopped(redriven),
      processed: redriven.done.length,
      superseded: redriven.superseded.length,
    }),
    verdicts: counts(judged),
    deadLetters: [
      ...judged.map((deadLetter) => ({
        ...deadLetterJson(deadLetter),
        verdict: deadLetter.verdict,
        ...detailOf(deadLetter, redriven),
        ...(redriven && {
          outcome: outcomeOf(deadLetter, redriven),
          failedAgain: redriven.back.find((back) => back.deadLetter === deadLetter)?.fingerprint ?? null,
        }),
      })),
      ...changed.map(changedJson),
    ],
  };
}

/** The details of a verdict, or of a send that failed. */
function detailOf(deadLetter: JudgedDeadLetter, redriven: Redriven | undefined) {
  const failed = redriven?.failed?.deadLetter === deadLetter ? redriven.failed : undefined;
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
  };
}

/** The options that a plan repeats in the command that applies it. */
interface RedrivePlanOptions extends Pick<ChangeOptions, 'reason'> {
  readonly limit?: number | undefined;
  readonly verbose?: boolean;
  /** Per second. @default the default of `--rate` */
  readonly rate?: number | undefined;
  /** Milliseconds. @default the default of `--wait` */
  readonly wait?: number | undefined;
}

/** The options of a redrive that Ctrl-C stopped; its other options are repeated in the command that continues it. */
interface RedrivenOptions extends RedrivePlanOptions {
  readonly interrupted?: boolean;
}

/** The command that redrives these dead letters. */
function applyLine(
  { commandLine }: Pick<Deployment, 'commandLine'>,
  name: string,
  choice: DeadLetterChoice,
  { limit, rate, wait, reason }: RedrivePlanOptions,
): string {
  const pace = [
    ...(limit === undefined ? [] : ['--limit', String(limit)]),
    ...(rate === undefined ? [] : ['--rate', String(rate)]),
    ...(wait === undefined ? [] : ['--wait', `${Math.ceil(wait / 1_000)}s`]),
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
  const todo = [
    ...(runs > 0 ? [`${runs} would run again`] : []),
    ...(handled > 0 ? [`${handled} would be deleted as already handled`] : []),
  ];
  return [
    `${source.name}: ${judged.length} of ${many(total, 'dead letter')}`,
    judgedText(source, judged, deployment.clock.now(), isGrouped(judged.length, options)),
    ...remediesText(deployment, source, judged, received.deadLetters),
    ...orderText(judged.filter(({ verdict }) => verdict === 'runs')).map((text) => prose(text)),
    ...(todo.length === 0
      ? ['There is nothing to redrive.']
      : [
          prose(`${todo.join(', ')}. Nothing was changed. To redrive:`),
          applyLine(deployment, source.name, choice, options),
        ]),
  ];
}

/** The outcome of a redrive as text. */
export function redrivenText(
  deployment: RemedyDeps,
  plan: RedrivePlan,
  redriven: Redriven,
  options: RedrivenOptions = {},
): string {
  const { place, source, judged, changed = [], received } = plan;
  const { runs, handled: before } = counts(judged);
  const handled = before + redriven.handled.length;
  const verb = source.kind === 'dead' ? 'published' : source.kind === 'stream' ? 'swept' : 'processed';
  const absorbed = redriven.superseded.length === 0 ? '' : `, ${redriven.superseded.length} superseded`;
  return [
    prose(placeText(place)),
    runs + before === 0
      ? `Nothing in ${source.name} would run again.`
      : `${redriven.done.length} of ${runs} ${verb}${absorbed}${handled > 0 ? `, ${handled} deleted as already handled` : ''}.`,
    ...(changed.length === 0
      ? []
      : [`${many(changed.length, 'dead letter')} changed since the plan: left alone.`]),
    ...remediesText(deployment, source, judgedAfter(judged, redriven), received.deadLetters),
    ...(options.interrupted === true && redriven.back.length === 0
      ? interruptedText(deployment, plan, redriven, options)
      : stoppedText(deployment, redriven, verb)),
  ].join('\n');
}

/** The end of a redrive that Ctrl-C stopped: what remains, and the command that continues. */
function interruptedText(
  deployment: Pick<Deployment, 'commandLine'>,
  { source, choice }: RedrivePlan,
  { waiting, untried }: Redriven,
  options: RedrivePlanOptions,
): string[] {
  const open = waiting.length > 0 ? ` ${waiting.length} redriven, not yet done.` : '';
  if (untried.length === 0) return [`${paint.red('Stopped')}.${open} No dead letter remains to redrive.`];
  // Ids that were redriven are no longer dead letters, and a command that names them is refused.
  const ids = (choice.ids ?? []).filter((id) => untried.some((left) => [left.id, left.eventId].includes(id)));
  const limit = options.limit === undefined ? undefined : untried.length;
  return [
    `${paint.red('Stopped')}.${open} ${many(untried.length, 'dead letter')} ${untried.length === 1 ? 'remains' : 'remain'}. To continue:`,
    applyLine(deployment, source.name, { ...choice, ids }, { ...options, limit }),
  ];
}

function stoppedText(
  deployment: Pick<Deployment, 'commandLine'>,
  { back, failed, waiting, untried }: Redriven,
  verb: string,
): string[] {
  const why = (id: string) => deployment.commandLine(shell`why ${id}`);
  const notTried = untried.length === 0 ? '' : `Not tried: ${untried.length}. `;
  const [first] = back;
  if (first !== undefined) {
    const id = first.deadLetter.eventId ?? first.deadLetter.id;
    return [
      prose(
        `${paint.red('Stopped')}: ${id} failed again${first.sameCause ? ' with the same cause' : ''}: ${clipped(first.fingerprint)}`,
      ),
      `${notTried}Fix the cause and repeat the command. For details:`,
      `  ${why(id)}`,
    ];
  }
  if (failed !== undefined) {
    const { deadLetter, code, message } = failed;
    const id = deadLetter.eventId ?? deadLetter.id;
    const open = waiting.length > 0 ? `${waiting.length} redriven but not ${verb} yet. ` : '';
    return [
      prose(`${paint.red('Stopped')}: the redrive of ${id} failed: ${code}: ${clipped(message)}`),
      prose(`${open}${notTried}Repeat the command: a message that was sent twice is absorbed.`),
    ];
  }
  if (waiting.length === 0) return [];
  const ids = waiting.slice(0, 5).map(({ eventId, id }) => eventId ?? id);
  return [
    prose(
      `${paint.red('Stopped')}: ${waiting.length} redriven but not ${verb} yet (${ids.join(', ')}${waiting.length > 5 ? ' …' : ''})`,
    ),
    prose(`${notTried}${keptText(waiting)}Use a longer --wait, or see what they wait for:`),
    `  ${why(ids[0] ?? '')}`,
  ];
}

/** The dead letter of an ordered message stays until its message has ended. */
function keptText(waiting: readonly DeadLetter[]): string {
  const kept = waiting.filter(({ isOrdered }) => isOrdered).length;
  return kept === 0
    ? ''
    : `${many(kept, 'dead letter')} of ordered messages ${kept === 1 ? 'stays' : 'stay'} until that has happened: repeat the command then. `;
}

function isStopped({ back, failed, waiting, untried }: Redriven): boolean {
  return back.length + waiting.length + untried.length > 0 || failed !== undefined;
}

function counts(judged: readonly JudgedDeadLetter[]): Record<RedriveVerdict, number> {
  const entries = REDRIVE_VERDICTS.map((wanted) => [
    wanted,
    judged.filter(({ verdict }) => verdict === wanted).length,
  ]);
  return Object.fromEntries(entries) as Record<RedriveVerdict, number>;
}

/** Those that were superseded meanwhile need the same help as those that were superseded before. */
function judgedAfter(judged: readonly JudgedDeadLetter[], { superseded }: Redriven): JudgedDeadLetter[] {
  // By id: the report has copies.
  const ids = new Set(superseded.map(({ id }) => id));
  return judged.map((one) => (ids.has(one.id) ? { ...one, verdict: 'superseded' } : one));
}

function outcomeOf(
  deadLetter: JudgedDeadLetter,
  { done, handled, superseded, back, failed, waiting, untried }: Redriven,
): RedriveOutcome {
  if (done.includes(deadLetter)) return 'processed';
  if (handled.includes(deadLetter)) return 'deleted';
  if (superseded.includes(deadLetter)) return 'superseded';
  if (waiting.includes(deadLetter)) return 'waiting';
  if (untried.includes(deadLetter)) return 'untried';
  if (failed?.deadLetter === deadLetter) return 'failed';
  if (back.some((entry) => entry.deadLetter === deadLetter)) return 'failed-again';
  return deadLetter.verdict === 'handled' ? 'deleted' : 'kept';
}
