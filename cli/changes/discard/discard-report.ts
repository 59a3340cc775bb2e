import { areChecked } from '../../../lambdas/runtime/inbox/started-effects.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { checkedWord } from '../../deployment/effects.ts';
import { placeText } from '../../deployment/place.ts';
import { choiceWords } from '../../reports/dead-letters/choice.ts';
import { deadLetterJson, deadLettersText, isGrouped } from '../../reports/dead-letters/dead-letter-text.ts';
import { unsentText } from '../../reports/dead-letters/redrive-plan.ts';
import { plannedDiscardWords } from '../../reports/dead-letters/verdict-words.ts';
import { fixLine } from '../../reports/findings/findings.ts';
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
  { place, source, same, changed, rule }: Pick<DiscardPlan, 'place' | 'source' | 'same' | 'changed' | 'rule'>,
  made: readonly DiscardStep[] | undefined,
  { reason }: Pick<ChangeOptions, 'reason'>,
) {
  const steps = made ?? same;
  return {
    ...place,
    source: source.name,
    applied: made !== undefined,
    reason: reason ?? null,
    ...(rule !== undefined && { rule: { problem: rule.problem, text: rule.text, fix: rule.fix ?? [] } }),
    deadLetters: [
      ...steps.map(({ deadLetter, outcome, message, events = [] }) => ({
        ...deadLetterJson(deadLetter),
        outcome,
        ...(events.length > 0 && { events: events.map(({ eventId }) => eventId) }),
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
  repair: 'send event',
  reject: 'reject',
};

/** A discard as text: the dead letters, and the command that discards them or how many were discarded. */
export function discardText(
  deployment: Pick<Deployment, 'clock' | 'commandLine' | 'awsLine'>,
  { place, source, choice, same, rule }: Pick<DiscardPlan, 'place' | 'source' | 'choice' | 'same' | 'rule'>,
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
    ...messagesText(steps),
    ...(rule === undefined
      ? []
      : [prose(`${applied ? '' : 'First: '}${rule.text}:`), `  ${fixLine(rule.fix ?? [], deployment)}`]),
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

/** The most messages of a plan that are shown: `--json` has all of them. */
const MESSAGES_MAX = 10;

function messagesText(steps: readonly DiscardStep[]): string[] {
  const all = [
    ...new Set(steps.flatMap(({ outcome, message }) => (message && !stays(outcome) ? [message] : []))),
  ];
  const more = all.length - MESSAGES_MAX;
  return [
    ...all.slice(0, MESSAGES_MAX).map((text) => prose(text)),
    ...(more > 0 ? [`… and ${more} more; --json shows all`] : []),
  ];
}

const CHECK_EFFECTS =
  'Side effects of these messages have happened, or may have: `--verbose` names each with its idempotency key. Ask their providers ' +
  'first; only --effects-checked discards these messages.';

const CHECK_DELETED =
  'The inbox rows of rejected messages were deleted by hand, and with them the record of their side effects: any may have happened. ' +
  'Find out from the logs and the providers; only --effects-checked discards these messages.';

/** The outcomes of a finished discard, in the order in which it counts them. */
const ENDED: readonly DiscardOutcome[] = ['discarded', 'repaired', 'rejected', 'handled'];
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
