import { Command } from 'commander';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import type { RejectRequest } from '../../lambdas/runtime/consume/settle-requests.ts';
import {
  areChecked,
  type EffectsChecked,
  type StartedEffect,
} from '../../lambdas/runtime/inbox/started-effects.ts';
import type { ConsumerEntry } from '../../lambdas/runtime/operations/directory.ts';
import { isEventId } from '../../lambdas/runtime/store/event-id.ts';
import { recordOperation } from '../../lambdas/runtime/store/operation-record.ts';
import type { Deployment } from '../deployment/deployment.ts';
import { checkedWord } from '../deployment/effects.ts';
import { checkBodies, settleByConsumer } from '../deployment/invoke.ts';
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
  asDeployed,
  type DeadLetter,
  type DeadLetterSource,
  deadLetterSource,
  putBack,
} from '../reports/dead-letters/dead-letters.ts';
import {
  type Discarded,
  type DiscardOutcome,
  discard,
  openText,
  stays,
} from '../reports/dead-letters/discard.ts';
import { inTurns } from '../reports/dead-letters/redrive-order.ts';
import { unsentText } from '../reports/dead-letters/redrive-plan.ts';
import { settled } from '../reports/dead-letters/standing.ts';
import { SOURCE_ARGUMENT } from '../terminal/arguments.ts';
import {
  applyWords,
  type ChangeOptions,
  effectsCheckedOption,
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
  /** A digest covers only the effects that the plan has shown. */
  readonly effectsChecked?: EffectsChecked;
  readonly reject?: boolean;
  readonly verbose?: boolean;
}

interface DiscardStep extends Discarded {
  readonly deadLetter: DeadLetter;
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
    .option('--reject', "have the consumer commit what its handler's rejected function returns")
    .addOption(effectsCheckedOption())
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
  const { reject = false } = options;
  if (reject && source.kind !== 'consumer' && source.kind !== 'rule') {
    throw new MailroomError(
      'BAD_ARGUMENT',
      `--reject runs a consumer's rejected function, and ${options.source} has no messages of a consumer.`,
    );
  }
  const place = await placeOf(deployment);
  const limits = { limit: LIMIT, hideS: DISCARD_HIDES_S, planned };
  const { deadLetters } = await receiveForChange(deployment, source, limits);
  try {
    const { chosen: found, choice } = choose(deployment, source, deadLetters, { ids, cause }, planned);
    const chosen = await asDeployed(deployment, source, found);
    const effectsChecked = areChecked(options.effectsChecked ?? false, effectsOf(chosen, reject));
    const plain = chosen.map((deadLetter): DiscardStep => {
      const checks = { reject, effectsChecked };
      const outcome = plannedOutcome(source, deadLetter, checks, deployment.clock.now());
      const message =
        isDiscard(outcome) && 'consumer' in source ? openText(source.consumer, deadLetter) : undefined;
      return { deadLetter, outcome, message };
    });
    const plan = reject ? await rejections(deployment, source, plain) : plain;
    const { same, changed } = asPlanned(
      planned,
      plan,
      ({ deadLetter }) => deadLetter,
      ({ outcome }) => outcome,
    );
    const steps =
      reason === undefined
        ? same
        : await discardAll(deployment, source, same, { reject, effectsChecked, reason });
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

/** True for the plan to set an inbox row DISCARDED. */
function isDiscard(outcome: DiscardOutcome): boolean {
  return outcome === 'discard' || outcome === 'discard-replacement';
}

function plannedOutcome(
  source: DeadLetterSource,
  deadLetter: DeadLetter,
  { effectsChecked, reject }: Readonly<Record<'effectsChecked' | 'reject', boolean>>,
  now: number,
): DiscardOutcome {
  // A pointer without an event id leads to no row.
  if (source.kind === 'dead' && !isEventId(deadLetter.id)) return 'unreadable';
  const verdict = settled(deadLetter, now) ?? 'discard';
  if (verdict === 'row-deleted') return effectsChecked ? 'discard' : verdict;
  if (verdict === 'discard' && mustCheck(deadLetter, reject) && !effectsChecked) return 'effects-unchecked';
  if (verdict === 'superseded') return 'handled';
  return verdict === 'unsent' ? 'discard-replacement' : verdict;
}

/** Plans to reject what would be discarded: the deployed consumer is asked whether its handler has a `rejected` function. */
async function rejections(
  { clients }: Deployment,
  source: DeadLetterSource,
  plain: readonly DiscardStep[],
): Promise<DiscardStep[]> {
  if (source.kind !== 'consumer' && source.kind !== 'rule') return [...plain];
  const open = plain.filter(({ outcome }) => outcome === 'discard');
  const bodies = open.map(({ deadLetter }) => deadLetter.received?.body ?? '');
  const checks = await checkBodies(clients.lambda, source.consumer, bodies);
  return plain.map((step): DiscardStep => {
    const { deadLetter } = step;
    if (step.outcome === 'discard-replacement')
      return {
        deadLetter,
        outcome: 'not-rejectable',
        message: `${unsentText(deadLetter)}. ${WITHOUT_REJECT}`,
      };
    if (deadLetter.isRowDeleted && (step.outcome === 'discard' || step.outcome === 'row-deleted'))
      return { deadLetter, outcome: 'not-rejectable', message: ROW_DELETED };
    const check = checks[open.indexOf(step)];
    if (check === undefined) return step;
    if (!check.ok)
      return { deadLetter, outcome: 'not-rejectable', message: `${check.code}: ${check.message}` };
    return check.rejects
      ? { deadLetter, outcome: 'reject' }
      : {
          deadLetter,
          outcome: 'not-rejectable',
          message: `The deployed handler of ${check.type} has no rejected function. ${WITHOUT_REJECT}`,
        };
  });
}

const WITHOUT_REJECT = 'Discard it without --reject.';

const ROW_DELETED = `Its inbox row was deleted by hand, and with it the results of its side effects. ${WITHOUT_REJECT}`;

async function discardAll(
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
  const discardStep = async (step: DiscardStep): Promise<DiscardStep> => {
    if (stays(step.outcome)) return step;
    if (deployment.terminal.signal.aborted) return { ...step, outcome: 'untried' };
    const { eventId = step.deadLetter.id } = step.deadLetter;
    const command = reject ? 'dlq discard --reject' : 'dlq discard';
    await recordOperation(deployment, { by: note.by, reason, command, subject: `${source.name} ${eventId}` });
    const how = step.outcome === 'reject' ? deps : deployment;
    const discarded = await discard(how, source, step.deadLetter, note);
    done += 1;
    deployment.terminal.progress(`${done} of ${plan.length} discarded`, { done, of: plan.length });
    return { ...step, ...discarded };
  };
  const ended = await eachOf(inTurns(source, plan), async (turn) => {
    const steps: DiscardStep[] = [];
    for (const step of turn) steps.push(await discardStep(step));
    return steps;
  });
  return ended.flat();
}

/** The effects of a message that must be checked. A `rejected` function reads the results of those that have completed. */
function uncheckedEffects(
  { effects = [] }: Pick<DeadLetter, 'effects'>,
  reject = false,
): readonly StartedEffect[] {
  return effects.filter(({ state }) => !reject || state !== 'completed');
}

/** The effects that one check of these dead letters covers. */
export function effectsOf(
  deadLetters: readonly Pick<DeadLetter, 'effects'>[],
  reject?: boolean,
): readonly StartedEffect[] {
  return deadLetters.flatMap((deadLetter) => uncheckedEffects(deadLetter, reject));
}

function mustCheck(deadLetter: DeadLetter, reject?: boolean): boolean {
  return uncheckedEffects(deadLetter, reject).length > 0;
}

const CHECK_EFFECTS =
  'Side effects of these messages have happened, or may have: `--verbose` names each with its idempotency key. Ask their providers ' +
  'first; only --effects-checked discards these messages.';

const CHECK_DELETED =
  'The inbox rows of rejected messages were deleted by hand, and with them the record of their side effects: any may have happened. ' +
  'Find out from the logs and the providers; only --effects-checked discards these messages.';

/** The document of `--json`. */
export function discardJson({ place, source, applied, reason, steps, changed = [] }: DiscardReport) {
  return {
    ...place,
    source: source.name,
    applied,
    reason: reason ?? null,
    deadLetters: [
      ...steps.map(({ deadLetter, outcome, message }) => ({
        ...deadLetterJson(deadLetter),
        outcome,
        ...(message !== undefined && { message }),
      })),
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
  ['rejected', 'rejected'],
  ['handled', 'deleted as already handled'],
  ['busy', 'left: a worker holds them'],
  ['unsent', 'left: replaced meanwhile by an event that was not received'],
  ['unreadable', 'left: unreadable'],
  ['effects-unchecked', 'left: their side effects have happened, or may have'],
  ['row-deleted', 'left: their rows were deleted by hand'],
  ['not-rejectable', 'left: they cannot be rejected'],
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
  options: Pick<DiscardOptions, 'verbose' | 'reject' | 'effectsChecked'>,
): string {
  const where = prose(placeText(place));
  if (steps.length === 0) return `${where}\nNothing to discard in ${source.name}.`;
  const lines = steps.map(({ deadLetter, outcome, message }) => {
    const refused = stays(outcome) ? message : undefined;
    const replaced = outcome === 'discard-replacement' ? unsentText(deadLetter) : refused;
    const refusal = replaced === undefined ? undefined : { message: replaced };
    const label = outcome === 'discard-replacement' ? 'discard' : outcome;
    return { deadLetter, label, refusal };
  });
  const words = choiceWords(choice);
  const isOpen = steps.some(({ deadLetter }) => mustCheck(deadLetter, options.reject));
  // A rejection would read what the row no longer has: no check makes it possible.
  const isDeleted = !options.reject && steps.some(({ deadLetter }) => deadLetter.isRowDeleted);
  const letters = steps.map(({ deadLetter }) => deadLetter);
  const effects = effectsOf(letters, options.reject);
  const isUnchecked = (isOpen || isDeleted) && !areChecked(options.effectsChecked ?? false, effects);
  const which = [
    source.name,
    ...(words.length === 0 ? ['--all'] : words),
    ...(options.reject ? ['--reject'] : []),
    ...(options.effectsChecked && !isUnchecked ? [checkedWord(effects)] : []),
    ...applyWords({ reason }),
  ];
  const grouped = isGrouped(steps.length, options);
  return [
    where,
    `${source.name}: ${many(steps.length, 'dead letter')}`,
    deadLettersText(lines, deployment.clock.now(), { label: 'outcome', grouped, done: applied }),
    ...new Set(steps.flatMap(({ outcome, message }) => (message && !stays(outcome) ? [prose(message)] : []))),
    ...(source.kind === 'stream'
      ? [
          prose(
            'The events of these batches are not discarded: the sweep publishes those in the shards that it reads. A redrive looks in every shard.',
          ),
        ]
      : []),
    ...(isOpen && (!applied || steps.some(({ outcome }) => outcome === 'effects-unchecked'))
      ? [prose(CHECK_EFFECTS)]
      : []),
    ...(isDeleted && (!applied || steps.some(({ outcome }) => outcome === 'row-deleted'))
      ? [prose(CHECK_DELETED)]
      : []),
    ...(applied
      ? [`${doneText(steps)}.`]
      : [
          `Nothing was changed. To ${options.reject ? 'reject' : 'discard'} them${isUnchecked ? `, add ${checkedWord(effects)} once you know` : ''}:`,
          `  ${deployment.commandLine(shell`dlq discard ${which}`)}`,
        ]),
  ].join('\n');
}
