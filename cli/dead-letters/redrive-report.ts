import { clipped } from '../frame/output.ts';
import { paint } from '../frame/paint.ts';
import type { Session } from '../frame/session.ts';
import { shell } from '../frame/shell.ts';
import { choiceWords, type DeadLetterChoice } from './choice.ts';
import { deadLetterJson, deadLetterTable } from './dead-letter-text.ts';
import type { ReceivedDeadLetters } from './dead-letters.ts';
import { type JudgedDeadLetter, REDRIVE_VERDICTS, type RedriveVerdict } from './redrive-plan.ts';
import type { Redriven } from './redrive-steps.ts';
import type { DeadLetterSource } from './sources.ts';

/** A redrive that is planned. */
export interface RedrivePlan {
  readonly source: DeadLetterSource;
  /** The dead letters that are meant. */
  readonly judged: readonly JudgedDeadLetter[];
  readonly received: ReceivedDeadLetters;
  readonly choice: DeadLetterChoice;
}

/** What to do about dead letters that a redrive leaves where they are. */
const REMEDIES: Readonly<Partial<Record<RedriveVerdict, string>>> = {
  fails: 'still fails: deploy a consumer that can read it, or dlq discard it.',
  'too-old':
    'too old: it may have run before; if it has not, mailroom message allow <consumer> <eventId>, then redrive.',
  busy: 'busy: a worker holds it, or it is retried soon; look again in a minute.',
  unreadable:
    'unreadable: its row cannot be read, so nothing is done with it; mailroom why <eventId> shows what to do.',
};

/** What became of a dead letter of the plan. */
type RedriveOutcome = 'processed' | 'deleted' | 'failed-again' | 'waiting' | 'untried' | 'kept';

/** A plan, and with `redriven` what became of it, as `--json` shows it. */
export function redriveJson({ source, judged, received }: RedrivePlan, redriven?: Redriven) {
  return {
    source: source.name,
    count: received.total,
    applied: redriven !== undefined,
    ...(redriven && { stopped: isStopped(redriven), processed: redriven.done.length }),
    verdicts: counts(judged),
    deadLetters: judged.map((deadLetter) => ({
      ...deadLetterJson(deadLetter),
      verdict: deadLetter.verdict,
      code: deadLetter.code ?? null,
      message: deadLetter.message ?? null,
      ...(redriven && {
        outcome: outcomeOf(deadLetter, redriven),
        failedAgain: redriven.back.find((back) => back.deadLetter === deadLetter)?.fingerprint ?? null,
      }),
    })),
  };
}

/** The plan for people. */
export function planText(session: Session, { source, judged, received, choice }: RedrivePlan): string {
  const { deadLetters, total } = received;
  if (total === 0) return `${source.name} is empty.`;
  if (deadLetters.length === 0)
    return `None of the ${total} dead letters of ${source.name} is visible: another command is reading them. Repeat this in a moment.`;
  if (judged.length === 0)
    return `None of the ${deadLetters.length} dead letters of ${source.name} is selected.`;
  const lines = judged.map((deadLetter) => {
    const { verdict, code, message } = deadLetter;
    return { deadLetter, label: verdict, cause: [code, message].filter(Boolean).join(': ') || undefined };
  });
  const { runs, handled } = counts(judged);
  const todo = [
    ...(runs > 0 ? [`${runs} would run again`] : []),
    ...(handled > 0 ? [`${handled} handled already would be deleted`] : []),
  ];
  const apply = shell`dlq redrive ${[source.name, ...choiceWords(choice)]} --apply`;
  return [
    `${source.name}: ${judged.length} of ${total} dead letters`,
    deadLetterTable(lines, session.clock.now(), 'verdict'),
    ...remedies(judged),
    todo.length === 0
      ? 'There is nothing to redrive.'
      : `${todo.join(', ')}. Nothing was changed; to do it: ${session.commandLine(apply)}`,
  ].join('\n');
}

/** What the redrive did, for people. */
export function redrivenText(session: Session, { source, judged }: RedrivePlan, redriven: Redriven): string {
  const { runs, handled } = counts(judged);
  const verb = source.kind === 'dead' ? 'published' : source.kind === 'stream' ? 'swept' : 'processed';
  return [
    runs + handled === 0
      ? `Nothing in ${source.name} would run again.`
      : `${redriven.done.length} of ${runs} ${verb}${handled > 0 ? `, ${handled} handled already deleted` : ''}.`,
    ...remedies(judged),
    ...stoppedText(session, redriven, verb),
  ].join('\n');
}

function stoppedText(session: Session, { back, waiting, untried }: Redriven, verb: string): string[] {
  const why = (id: string) => session.commandLine(shell`why ${id}`);
  const [first] = back;
  if (first !== undefined) {
    const id = first.deadLetter.eventId ?? first.deadLetter.id;
    return [
      `${paint.red('Stopped')}: ${id} failed again${first.sameCause ? ' with the same cause' : ''}: ${clipped(first.fingerprint)}`,
      `${untried.length} were not tried. Fix the cause and repeat this; ${why(id)} shows more.`,
    ];
  }
  if (waiting.length === 0) return [];
  const ids = waiting.slice(0, 5).map(({ eventId, id }) => eventId ?? id);
  return [
    `${paint.red('Stopped')}: ${waiting.length} were redriven and are not ${verb} yet: ${ids.join(', ')}${waiting.length > 5 ? ' …' : ''}`,
    `${untried.length} were not tried. See what they wait for (${why(ids[0] ?? '')}), or repeat this with a longer --wait.`,
  ];
}

function isStopped({ back, waiting, untried }: Redriven): boolean {
  return back.length + waiting.length + untried.length > 0;
}

function remedies(judged: readonly JudgedDeadLetter[]): string[] {
  return [...new Set(judged.flatMap(({ verdict }) => REMEDIES[verdict] ?? []))];
}

function counts(judged: readonly JudgedDeadLetter[]): Record<RedriveVerdict, number> {
  const entries = REDRIVE_VERDICTS.map((wanted) => [
    wanted,
    judged.filter(({ verdict }) => verdict === wanted).length,
  ]);
  return Object.fromEntries(entries) as Record<RedriveVerdict, number>;
}

function outcomeOf(deadLetter: JudgedDeadLetter, { done, back, waiting, untried }: Redriven): RedriveOutcome {
  if (done.includes(deadLetter)) return 'processed';
  if (waiting.includes(deadLetter)) return 'waiting';
  if (untried.includes(deadLetter)) return 'untried';
  if (back.some((entry) => entry.deadLetter === deadLetter)) return 'failed-again';
  return deadLetter.verdict === 'handled' ? 'deleted' : 'kept';
}
