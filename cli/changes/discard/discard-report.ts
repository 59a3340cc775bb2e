import { areChecked } from '../../../lambdas/runtime/inbox/started-effects.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { checkedWord } from '../../deployment/effects.ts';
import { placeText } from '../../deployment/place.ts';
import { choiceWords } from '../../reports/dead-letters/choice.ts';
import { deadLetterJson, deadLettersText, isGrouped } from '../../reports/dead-letters/dead-letter-text.ts';
import { unsentText } from '../../reports/dead-letters/redrive-plan.ts';
import { plannedDiscardWords } from '../../reports/dead-letters/verdict-words.ts';
import { applyWords, type ChangeOptions } from '../../terminal/change.ts';
import { many } from '../../terminal/output.ts';
import { prose } from '../../terminal/prose.ts';
import { shell } from '../../terminal/shell.ts';
import { type DiscardOutcome, stays } from './discard-one.ts';
import {
  type DiscardFlags,
  type DiscardPlan,
  type DiscardStep,
  effectsOf,
  mustCheck,
} from './discard-plan.ts';

/** The document of `--json`. */
export function discardJson(
  { place, source, same, changed }: Pick<DiscardPlan, 'place' | 'source' | 'same' | 'changed'>,
  made: readonly DiscardStep[] | undefined,
  { reason }: Pick<ChangeOptions, 'reason'>,
) {
  const steps = made ?? same;
  return {
    ...place,
    source: source.name,
    applied: made !== undefined,
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

/** The verbs of a plan. */
const ACTIONS: Readonly<Partial<Record<DiscardOutcome, string>>> = {
  discard: 'discard',
  'discard-replacement': 'discard',
  reject: 'reject',
};

/** A discard as text: the dead letters, and the command that discards them or how many were discarded. */
export function discardText(
  deployment: Pick<Deployment, 'clock' | 'commandLine'>,
  { place, source, choice, same }: Pick<DiscardPlan, 'place' | 'source' | 'choice' | 'same'>,
  made: readonly DiscardStep[] | undefined,
  options: DiscardFlags & Pick<ChangeOptions, 'reason'>,
): string {
  const steps = made ?? same;
  const applied = made !== undefined;
  const where = prose(placeText(place));
  if (steps.length === 0) return `${where}\nNothing to discard in ${source.name}.`;
  const lines = steps.map(({ deadLetter, outcome, message }) => {
    const refused = stays(outcome) ? message : undefined;
    const replaced = outcome === 'discard-replacement' ? unsentText(deadLetter) : refused;
    const refusal = replaced === undefined ? undefined : { message: replaced };
    const label = ACTIONS[outcome] ?? plannedDiscardWords(outcome, source.name).label;
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
    ...applyWords(options),
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
      ? [doneText(steps, source.name)]
      : [
          `Nothing was changed. To ${options.reject ? 'reject' : 'discard'} them${isUnchecked ? `, add ${checkedWord(effects)} once you know` : ''}:`,
          `  ${deployment.commandLine(shell`dlq discard ${which}`)}`,
        ]),
  ].join('\n');
}

const CHECK_EFFECTS =
  'Side effects of these messages have happened, or may have: `--verbose` names each with its idempotency key. Ask their providers ' +
  'first; only --effects-checked discards these messages.';

const CHECK_DELETED =
  'The inbox rows of rejected messages were deleted by hand, and with them the record of their side effects: any may have happened. ' +
  'Find out from the logs and the providers; only --effects-checked discards these messages.';

/** The outcomes of a finished discard, in the order in which it counts them. */
const ENDED: readonly DiscardOutcome[] = ['discarded', 'rejected', 'handled'];
const LEFT: readonly DiscardOutcome[] = [
  'busy',
  'unsent',
  'unreadable',
  'effects-unchecked',
  'row-deleted',
  'not-rejectable',
  'failed',
  'untried',
];

function doneText(steps: readonly DiscardStep[], source: string): string {
  const counted = (outcomes: readonly DiscardOutcome[]) =>
    outcomes.flatMap((outcome) => {
      const count = steps.filter((step) => step.outcome === outcome).length;
      return count === 0 ? [] : [`${count} ${plannedDiscardWords(outcome, source).label}`];
    });
  const [ended, left] = [counted(ENDED), counted(LEFT)];
  return [
    ended.length === 0 ? 'Nothing was discarded.' : `${ended.join(', ')}.`,
    ...(left.length === 0 ? [] : [`Left: ${left.join(', ')}.`]),
  ].join(' ');
}
