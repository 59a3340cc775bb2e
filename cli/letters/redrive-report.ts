import { clipped, table } from '../frame/output.ts';
import { paint } from '../frame/paint.ts';
import type { Session } from '../frame/session.ts';
import { shell } from '../frame/shell.ts';
import { choiceWords, type LetterChoice } from './letter-choice.ts';
import { expiry, letterJson, nameCells } from './letter-text.ts';
import type { JudgedLetter, LetterVerdict } from './letter-verdict.ts';
import type { DeathPlace, Letters } from './letters.ts';
import type { Redriven } from './redrive-steps.ts';

const VERDICTS: Readonly<Record<LetterVerdict, string>> = {
  runs: 'runs again',
  fails: 'still fails',
  handled: 'handled',
  'too-old': 'too old',
  busy: 'busy',
  unreadable: 'unreadable',
};

/** What to do about letters that a redrive leaves where they are. */
const REMEDIES: Readonly<Partial<Record<LetterVerdict, string>>> = {
  fails: 'still fails: deploy a consumer that can read it, or dlq discard it.',
  'too-old':
    'too old: it may have run before; if it has not, mailroom message allow <consumer> <eventId>, then redrive.',
  busy: 'busy: somebody works on it, or it is tried again soon; look again in a minute.',
  unreadable:
    'unreadable: its row cannot be read, so nothing is done with it; mailroom why <eventId> says what to do.',
};

/** What became of a letter of the plan. */
type Outcome = 'processed' | 'deleted' | 'failed-again' | 'waiting' | 'untried' | 'kept';

/** The plan as `--json` shows it. */
export function planJson(place: DeathPlace, plan: readonly JudgedLetter[], total: number) {
  return {
    place: place.place,
    count: total,
    applied: false,
    verdicts: counts(plan),
    letters: plan.map((letter) => ({ ...letterJson(letter), ...verdictJson(letter) })),
  };
}

/** The redrive as `--json` shows it. */
export function redrivenJson(
  place: DeathPlace,
  plan: readonly JudgedLetter[],
  total: number,
  redriven: Redriven,
) {
  return {
    place: place.place,
    count: total,
    applied: true,
    stopped: isStopped(redriven),
    processed: redriven.done.length,
    verdicts: counts(plan),
    letters: plan.map((letter) => ({
      ...letterJson(letter),
      ...verdictJson(letter),
      outcome: outcomeOf(letter, redriven),
      failedAgain: redriven.back.find((back) => back.letter === letter)?.fingerprint ?? null,
    })),
  };
}

/** The plan for people. */
export function planText(
  session: Session,
  place: DeathPlace,
  plan: readonly JudgedLetter[],
  { letters, total }: Letters,
  choice: LetterChoice,
): string {
  if (plan.length === 0)
    return total === 0 ? `${place.place} is empty.` : noneOf(place, letters.length, total);
  const now = session.clock.now();
  const rows = plan.map((letter) => [
    VERDICTS[letter.verdict],
    ...nameCells(letter),
    expiry(letter, now),
    clipped(whyText(letter)),
  ]);
  const { runs, handled } = counts(plan);
  const todo = [
    ...(runs > 0 ? [`${runs} would run again`] : []),
    ...(handled > 0 ? [`${handled} handled already would be deleted`] : []),
  ];
  return [
    `${place.place}: ${plan.length} of ${total} letters`,
    table(['verdict', 'letter', 'event', 'type', 'deleted', 'cause'], rows),
    ...remedies(plan),
    todo.length === 0
      ? 'There is nothing to redrive.'
      : `${todo.join(', ')}. Nothing was changed; to do it: ${session.commandLine(shell`dlq redrive ${[place.place, ...choiceWords(choice)]} --apply`)}`,
  ].join('\n');
}

/** What the redrive did, for people. */
export function redrivenText(
  session: Session,
  place: DeathPlace,
  plan: readonly JudgedLetter[],
  redriven: Redriven,
): string {
  const { runs, handled } = counts(plan);
  const { done, back, waiting, untried } = redriven;
  const verb = place.kind === 'dead' ? 'published' : place.kind === 'stream' ? 'swept' : 'processed';
  const [first] = back;
  const lines = [
    runs + handled === 0
      ? `Nothing in ${place.place} would run again.`
      : `${done.length} of ${runs} ${verb}${handled > 0 ? `, ${handled} handled already deleted` : ''}.`,
    ...remedies(plan),
  ];
  if (first !== undefined) {
    const { eventId, id } = first.letter;
    const whether = first.sameCause ? 'failed again with the same cause' : 'failed again';
    lines.push(
      `${paint.red('Stopped')}: ${eventId ?? id} ${whether}: ${clipped(first.fingerprint)}`,
      `${untried.length} were not tried. Mend the cause and repeat this; ${session.commandLine(shell`why ${eventId ?? id}`)} tells more.`,
    );
  } else if (waiting.length > 0) {
    const ids = waiting.slice(0, 5).map(({ eventId, id }) => eventId ?? id);
    lines.push(
      `${paint.red('Stopped')}: ${waiting.length} were redriven and are not ${verb} yet: ${ids.join(', ')}${waiting.length > 5 ? ' …' : ''}`,
      `${untried.length} were not tried. See what they wait for (${session.commandLine(shell`why ${ids[0] ?? ''}`)}), or repeat this with a longer --wait.`,
    );
  }
  return lines.join('\n');
}

/** Why it would not run; else what brought it there. */
function whyText({ code, message, fingerprint }: JudgedLetter): string {
  return [code, message].filter(Boolean).join(': ') || (fingerprint ?? '-');
}

/** Whether it did not come to its end. */
function isStopped({ back, waiting, untried }: Redriven): boolean {
  return back.length + waiting.length + untried.length > 0;
}

function noneOf({ place }: DeathPlace, seen: number, total: number): string {
  return seen === 0
    ? `Nothing of ${place} can be seen now: somebody else looks at its ${total} letters. Repeat this in a moment.`
    : `None of the ${seen} letters of ${place} is meant.`;
}

function remedies(plan: readonly JudgedLetter[]): string[] {
  return [...new Set(plan.flatMap(({ verdict }) => REMEDIES[verdict] ?? []))];
}

function counts(plan: readonly JudgedLetter[]): Record<LetterVerdict, number> {
  const count = (verdict: LetterVerdict) => plan.filter((letter) => letter.verdict === verdict).length;
  return {
    runs: count('runs'),
    fails: count('fails'),
    handled: count('handled'),
    'too-old': count('too-old'),
    busy: count('busy'),
    unreadable: count('unreadable'),
  };
}

function verdictJson({ verdict, code, message }: JudgedLetter) {
  return { verdict, code: code ?? null, message: message ?? null };
}

function outcomeOf(letter: JudgedLetter, { done, back, waiting, untried }: Redriven): Outcome {
  if (done.includes(letter)) return 'processed';
  if (waiting.includes(letter)) return 'waiting';
  if (untried.includes(letter)) return 'untried';
  if (back.some((entry) => entry.letter === letter)) return 'failed-again';
  return letter.verdict === 'handled' ? 'deleted' : 'kept';
}
