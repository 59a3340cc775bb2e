import { Command } from 'commander';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { isEventId } from '../../lambdas/runtime/store/event-id.ts';
import { recordOperation } from '../../lambdas/runtime/store/operation-record.ts';
import type { Deployment } from '../deployment/deployment.ts';
import { type Place, placeOf, placeText } from '../deployment/place.ts';
import { eachOf } from '../deployment/rows-reader.ts';
import {
  asPlanned,
  type ChangedDeadLetter,
  choiceWords,
  choose,
  type DeadLetterChoice,
  receiveForChange,
} from '../reports/dead-letters/choice.ts';
import {
  deadLetterJson,
  deadLettersText,
  isGrouped,
  verboseOption,
} from '../reports/dead-letters/dead-letter-text.ts';
import {
  type DeadLetter,
  type DeadLetterSource,
  deadLetterSource,
  putBack,
} from '../reports/dead-letters/dead-letters.ts';
import { type DiscardOutcome, discard, stays } from '../reports/dead-letters/discard.ts';
import { unsentText } from '../reports/dead-letters/redrive-plan.ts';
import { settled } from '../reports/dead-letters/standing.ts';
import { SOURCE_ARGUMENT } from '../terminal/arguments.ts';
import {
  applyWords,
  type ChangeOptions,
  type PlannedVerdicts,
  reasonOption,
  reasonToApply,
} from '../terminal/change.ts';
import { EXIT, type Io } from '../terminal/io.ts';
import { many } from '../terminal/output.ts';
import { prose } from '../terminal/prose.ts';
import { shell } from '../terminal/shell.ts';
import { type Report, reportOf } from '../terminal/terminal.ts';
import { reporting } from './command.ts';

interface DiscardOptions extends ChangeOptions, DeadLetterChoice {
  readonly source: string;
  readonly all?: boolean;
  readonly effectsChecked?: boolean;
  readonly verbose?: boolean;
}

interface DiscardStep {
  readonly deadLetter: DeadLetter;
  readonly outcome: DiscardOutcome;
}

/** A discard, planned or applied. */
interface DiscardReport {
  readonly place: Place;
  readonly source: Pick<DeadLetterSource, 'name' | 'kind'>;
  readonly applied: boolean;
  /** `undefined` in a plan without one. */
  readonly reason: string | undefined;
  readonly steps: readonly DiscardStep[];
  /** Those of a confirmed plan that it no longer describes: left alone. @default none */
  readonly changed?: readonly ChangedDeadLetter[];
}

/** The most dead letters of one run. */
const LIMIT = 1_000;

/** If the command dies, dead letters reappear after this many seconds. */
const DISCARD_HIDES_S = 300;

/** `mailroom dlq discard`. */
export function discardCommand(io: Io): Command {
  return new Command('discard')
    .description('Shows which dead letters would be discarded. With --apply, discards them and stores why.')
    .argument('<source>', SOURCE_ARGUMENT)
    .argument('[id...]', 'dead letters: their ids or event ids, or the first 8 or more characters')
    .option('--cause <text>', 'dead letters with this text in their cause (any case)')
    .option('--all', `every dead letter of the source (at most ${LIMIT} per run)`)
    .option('--effects-checked', 'you have asked the providers of all effects that the plan names')
    .option('--apply', 'discard them')
    .addOption(reasonOption())
    .addOption(verboseOption())
    .action(reporting(io, discardDeadLetters, 'source', 'ids'));
}

/**
 * Plans a discard; with `apply`, makes it.
 *
 * @param planned - the plan that was confirmed @default the options alone decide
 */
export async function discardDeadLetters(
  deployment: Deployment,
  options: DiscardOptions,
  planned?: PlannedVerdicts,
): Promise<Report<ReturnType<typeof discardJson>>> {
  const source = deadLetterSource(deployment.directory, options.source);
  const { ids = [], cause, all = false } = options;
  const reason = reasonToApply(options);
  const applied = reason !== undefined;
  if ((ids.length > 0 || cause !== undefined) === all) {
    throw new MailroomError(
      'BAD_ARGUMENT',
      `Select the dead letters of ${options.source} by id, with --cause, or with --all.`,
    );
  }
  const place = await placeOf(deployment);
  const limits = { limit: LIMIT, hideS: DISCARD_HIDES_S, planned };
  const { deadLetters } = await receiveForChange(deployment, source, limits);
  try {
    const { chosen, choice } = choose(deployment, source, deadLetters, { ids, cause }, planned);
    const plan = chosen.map((deadLetter) => ({
      deadLetter,
      outcome: plannedOutcome(source, deadLetter, options, deployment.clock.now()),
    }));
    const { same, changed } = asPlanned(
      planned,
      plan,
      ({ deadLetter }) => deadLetter,
      ({ outcome }) => outcome,
    );
    const steps =
      reason === undefined ? same : await discardAll(deployment, source, same, { ...options, reason });
    const report = { place, source, applied, reason: options.reason, steps, changed };
    const isStopped = steps.some(({ outcome }) => outcome === 'untried');
    const isPartial = applied && (steps.some(({ outcome }) => stays(outcome)) || changed.length > 0);
    return reportOf(
      discardJson(report),
      { report, choice },
      (seen) => discardText(deployment, seen.report, seen.choice, options),
      isStopped ? EXIT.stopped : isPartial ? EXIT.attention : EXIT.ok,
    );
  } finally {
    await putBack(deployment.queues, source, deadLetters);
  }
}

function plannedOutcome(
  source: DeadLetterSource,
  deadLetter: DeadLetter,
  { effectsChecked = false }: Pick<DiscardOptions, 'effectsChecked'>,
  now: number,
): DiscardOutcome {
  // A pointer without an event id leads to no row.
  if (source.kind === 'dead' && !isEventId(deadLetter.id)) return 'unreadable';
  const verdict = settled(deadLetter, now) ?? 'discard';
  if (verdict === 'discard' && hasEffects(deadLetter) && !effectsChecked) return 'effects-unchecked';
  return verdict === 'unsent' ? 'discard-replacement' : verdict;
}

async function discardAll(
  deployment: Deployment,
  source: DeadLetterSource,
  plan: readonly DiscardStep[],
  { reason, effectsChecked }: { readonly reason: string; readonly effectsChecked?: boolean },
): Promise<DiscardStep[]> {
  const note = { by: await deployment.operator(), reason, effectsChecked };
  if (!plan.every(({ outcome }) => stays(outcome))) {
    const ids = plan.map(({ deadLetter }) => deadLetter.eventId ?? deadLetter.id);
    const subject = `${source.name}: ${many(ids.length, 'dead letter')}: ${ids.slice(0, 20).join(', ')}${ids.length > 20 ? ' …' : ''}`;
    await recordOperation(deployment, { by: note.by, reason, command: 'dlq discard', subject });
  }
  let done = 0;
  return eachOf(plan, async (step) => {
    if (stays(step.outcome)) return step;
    if (deployment.terminal.signal.aborted) return { ...step, outcome: 'untried' };
    const outcome = await discard(deployment, source, step.deadLetter, note);
    done += 1;
    deployment.terminal.progress(`${done} of ${plan.length} discarded`);
    return { ...step, outcome };
  });
}

function hasEffects({ effects = [] }: DeadLetter): boolean {
  return effects.length > 0;
}

const CHECK_EFFECTS =
  'Side effects of these messages have happened, or may have: `--verbose` names each with its idempotency key. Ask their providers ' +
  'first; only --effects-checked discards these messages.';

/** The document of `--json`. */
export function discardJson({ place, source, applied, reason, steps, changed = [] }: DiscardReport) {
  return {
    ...place,
    source: source.name,
    applied,
    reason: reason ?? null,
    deadLetters: [
      ...steps.map(({ deadLetter, outcome }) => ({ ...deadLetterJson(deadLetter), outcome })),
      ...changed.map(({ deadLetter, text }) => ({
        ...deadLetterJson(deadLetter),
        outcome: 'changed' as const,
        message: text,
      })),
    ],
  };
}

/** The outcomes that a finished discard counts. */
const DONE = [
  ['discarded', 'discarded'],
  ['handled', 'deleted as already handled'],
  ['busy', 'left: a worker holds them'],
  ['unsent', 'left: replaced meanwhile by an event that was not received'],
  ['unreadable', 'left: unreadable'],
  ['effects-unchecked', 'left: their side effects have happened, or may have'],
  ['untried', 'left: stopped before'],
] as const;

function doneText(steps: readonly DiscardStep[]): string {
  const counts = DONE.map(([of, words]) => ({
    words,
    count: steps.filter(({ outcome }) => outcome === of).length,
  }));
  return counts.flatMap(({ count, words }) => (count === 0 ? [] : [`${count} ${words}`])).join(', ');
}

/** A discard as text: the dead letters, and the command that discards them or how many were discarded. */
export function discardText(
  deployment: Pick<Deployment, 'clock' | 'commandLine'>,
  { place, source, applied, reason, steps }: DiscardReport,
  choice: DeadLetterChoice,
  options: Pick<DiscardOptions, 'verbose'>,
): string {
  const where = prose(placeText(place));
  if (steps.length === 0) return `${where}\nNothing to discard in ${source.name}.`;
  const lines = steps.map(({ deadLetter, outcome }) => {
    const refusal = outcome === 'discard-replacement' ? { message: unsentText(deadLetter) } : undefined;
    const label = outcome === 'discard-replacement' ? 'discard' : outcome;
    return { deadLetter, label, refusal };
  });
  const words = choiceWords(choice);
  const mustCheck = steps.some(({ deadLetter }) => hasEffects(deadLetter));
  const which = [
    source.name,
    ...(words.length === 0 ? ['--all'] : words),
    ...(mustCheck ? ['--effects-checked'] : []),
    ...applyWords({ reason }),
  ];
  const grouped = isGrouped(steps.length, options);
  return [
    where,
    `${source.name}: ${many(steps.length, 'dead letter')}`,
    deadLettersText(lines, deployment.clock.now(), { label: 'outcome', grouped, done: applied }),
    ...(source.kind === 'stream'
      ? [prose('The events of these batches are not discarded: the sweep publishes them.')]
      : []),
    ...(mustCheck && (!applied || steps.some(({ outcome }) => outcome === 'effects-unchecked'))
      ? [prose(CHECK_EFFECTS)]
      : []),
    ...(applied
      ? [`${doneText(steps)}.`]
      : [
          'Nothing was changed. To discard them:',
          `  ${deployment.commandLine(shell`dlq discard ${which}`)}`,
        ]),
  ].join('\n');
}
