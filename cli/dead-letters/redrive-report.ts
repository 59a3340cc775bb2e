import { clipped, many } from '../frame/output.ts';
import { paint } from '../frame/paint.ts';
import { prose } from '../frame/prose.ts';
import type { Session } from '../frame/session.ts';
import { shell } from '../frame/shell.ts';
import { choiceWords, type DeadLetterChoice } from './choice.ts';
import { deadLetterJson, deadLetterTable } from './dead-letter-text.ts';
import type { ReceivedDeadLetters } from './dead-letters.ts';
import { type JudgedDeadLetter, REDRIVE_VERDICTS, type RedriveVerdict } from './redrive-plan.ts';
import type { Redriven } from './redrive-steps.ts';
import type { DeadLetterSource } from './sources.ts';

/** The plan of a redrive. */
export interface RedrivePlan {
  readonly source: DeadLetterSource;
  /** The selected dead letters. */
  readonly judged: readonly JudgedDeadLetter[];
  readonly received: ReceivedDeadLetters;
  readonly choice: DeadLetterChoice;
}

/** The remedies for dead letters that a redrive does not send. */
const REMEDIES: Readonly<Partial<Record<RedriveVerdict, string>>> = {
  fails: 'still fails: deploy a consumer that can read it, or discard it with dlq discard.',
  'too-old':
    'too old: it may have run before. If it has not, run `mailroom message allow <consumer> <eventId>`, then redrive it.',
  busy: 'busy: a worker holds it, or it is retried soon. Check again in a minute.',
  unreadable: 'unreadable: its row cannot be read, so it stays. `mailroom why <eventId>` shows what to do.',
};

/** The outcome for a dead letter of the plan. */
type RedriveOutcome = 'processed' | 'deleted' | 'failed-again' | 'waiting' | 'untried' | 'kept';

/** The document of `--json`: a plan, and with `redriven` its outcome. */
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

/** The plan as text. */
export function planText(
  session: Pick<Session, 'clock' | 'commandLine'>,
  { source, judged, received, choice }: RedrivePlan,
): string {
  const { deadLetters, total } = received;
  if (total === 0) return `${source.name} is empty.`;
  if (deadLetters.length === 0)
    return prose(
      `None of the ${many(total, 'dead letter')} of ${source.name} is visible, because another command is reading them. Try again in a moment.`,
    );
  if (judged.length === 0)
    return `None of the ${many(deadLetters.length, 'dead letter')} of ${source.name} matches.`;
  const lines = judged.map((deadLetter) => {
    const { verdict, code, message } = deadLetter;
    return { deadLetter, label: verdict, cause: [code, message].filter(Boolean).join(': ') || undefined };
  });
  const { runs, handled } = counts(judged);
  const todo = [
    ...(runs > 0 ? [`${runs} would run again`] : []),
    ...(handled > 0 ? [`${handled} would be deleted as already handled`] : []),
  ];
  const apply = shell`dlq redrive ${[source.name, ...choiceWords(choice)]} --apply`;
  return [
    `${source.name}: ${judged.length} of ${many(total, 'dead letter')}`,
    deadLetterTable(lines, session.clock.now(), 'verdict'),
    ...remedies(judged),
    ...(todo.length === 0
      ? ['There is nothing to redrive.']
      : [prose(`${todo.join(', ')}. Nothing was changed. To redrive:`), `  ${session.commandLine(apply)}`]),
  ].join('\n');
}

/** The outcome of a redrive as text. */
export function redrivenText(
  session: Pick<Session, 'commandLine'>,
  { source, judged }: RedrivePlan,
  redriven: Redriven,
): string {
  const { runs, handled } = counts(judged);
  const verb = source.kind === 'dead' ? 'published' : source.kind === 'stream' ? 'swept' : 'processed';
  return [
    runs + handled === 0
      ? `Nothing in ${source.name} would run again.`
      : `${redriven.done.length} of ${runs} ${verb}${handled > 0 ? `, ${handled} deleted as already handled` : ''}.`,
    ...remedies(judged),
    ...stoppedText(session, redriven, verb),
  ].join('\n');
}

function stoppedText(
  session: Pick<Session, 'commandLine'>,
  { back, waiting, untried }: Redriven,
  verb: string,
): string[] {
  const why = (id: string) => session.commandLine(shell`why ${id}`);
  const [first] = back;
  if (first !== undefined) {
    const id = first.deadLetter.eventId ?? first.deadLetter.id;
    return [
      prose(
        `${paint.red('Stopped')}: ${id} failed again${first.sameCause ? ' with the same cause' : ''}: ${clipped(first.fingerprint)}`,
      ),
      `Not tried: ${untried.length}. Fix the cause and repeat the command. For details:`,
      `  ${why(id)}`,
    ];
  }
  if (waiting.length === 0) return [];
  const ids = waiting.slice(0, 5).map(({ eventId, id }) => eventId ?? id);
  return [
    prose(
      `${paint.red('Stopped')}: ${waiting.length} redriven but not ${verb} yet (${ids.join(', ')}${waiting.length > 5 ? ' …' : ''})`,
    ),
    `Not tried: ${untried.length}. Use a longer --wait, or see what they wait for:`,
    `  ${why(ids[0] ?? '')}`,
  ];
}

function isStopped({ back, waiting, untried }: Redriven): boolean {
  return back.length + waiting.length + untried.length > 0;
}

function remedies(judged: readonly JudgedDeadLetter[]): string[] {
  return [...new Set(judged.flatMap(({ verdict }) => REMEDIES[verdict] ?? []))].map((text) => prose(text));
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
