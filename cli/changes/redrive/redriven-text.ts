import type { Deployment } from '../../deployment/deployment.ts';
import { placeText } from '../../deployment/place.ts';
import type { DeadLetter } from '../../reports/dead-letters/dead-letters.ts';
import type { JudgedDeadLetter } from '../../reports/dead-letters/redrive-plan.ts';
import { type RemedyDeps, remediesText, selecting } from '../../reports/dead-letters/remedies.ts';
import { clipped, many } from '../../terminal/output.ts';
import { paint } from '../../terminal/paint.ts';
import { prose } from '../../terminal/prose.ts';
import { shell } from '../../terminal/shell.ts';
import { type CauseOutcome, causeOutcomes, causesText } from './redrive-outcomes.ts';
import { applyLine, counts, type RedrivePlan, type RedrivePlanOptions } from './redrive-report.ts';
import type { Redriven } from './redrive-steps.ts';

/** The options of a redrive that Ctrl-C stopped; its other options are repeated in the command that continues it. */
interface RedrivenOptions extends RedrivePlanOptions {
  readonly interrupted?: boolean;
}

/** The most commands for causes, and the most ids of messages that wait. */
const SHOWN_MAX = 5;

/** The outcome of a redrive as text: its numbers, a table by cause, and the next commands. */
export function redrivenText(
  deployment: RemedyDeps,
  plan: RedrivePlan,
  redriven: Redriven,
  options: RedrivenOptions = {},
): string {
  const { place, source, judged, changed = [], received } = plan;
  const verb = source.kind === 'dead' ? 'published' : source.kind === 'stream' ? 'swept' : 'processed';
  const causes = causeOutcomes(judged, redriven);
  const isPlain = causes.length < 2 && causes.every(({ outcome }) => outcome === 'processed');
  return [
    prose(placeText(place)),
    prose(numbersText(plan, redriven, verb)),
    ...(changed.length === 0
      ? []
      : [`${many(changed.length, 'dead letter')} changed since the plan: left alone.`]),
    ...(isPlain || causes.length === 0 ? [] : [causesText(causes, source.name)]),
    ...remediesText(deployment, source, judgedAfter(judged, redriven), received.deadLetters),
    ...failedText(redriven),
    ...waitingText(deployment, redriven, verb),
    ...failedAgainText(deployment, plan, redriven, causes),
    ...(options.interrupted === true
      ? interruptedText(deployment, plan, redriven, options)
      : untriedText(deployment, plan, redriven, options)),
  ].join('\n');
}

function numbersText({ source, judged }: RedrivePlan, redriven: Redriven, verb: string): string {
  const { done, handled, superseded, back, retrying = [], failed = [], waiting, untried } = redriven;
  const { runs, handled: settled } = counts(judged);
  const ids = new Set(failed.map(({ deadLetter }) => deadLetter.id));
  const before = judged.filter(({ verdict, id }) => verdict === 'handled' && !ids.has(id)).length;
  if (runs + settled === 0) return `Nothing in ${source.name} would run again.`;
  const others = [
    [superseded.length, 'superseded'],
    [before + handled.length, 'deleted as already handled'],
    [back.length + retrying.length, 'failed again'],
    [failed.length, 'not redriven'],
    [waiting.length, 'without a result'],
    [untried.length, 'not tried'],
  ] as const;
  const texts = others.flatMap(([count, what]) => (count === 0 ? [] : [`, ${count} ${what}`]));
  return `${done.length} of ${runs} ${verb}${texts.join('')}.`;
}

/** The sends that failed. */
function failedText({ failed = [] }: Redriven): string[] {
  const [first] = failed;
  if (first === undefined) return [];
  const { deadLetter, code, message } = first;
  const more = failed.length === 1 ? '' : ` So did ${failed.length - 1} more.`;
  return [
    prose(`${paint.red('The redrive')} of ${nameOf(deadLetter)} failed: ${code}: ${clipped(message)}${more}`),
    prose('Repeat the command: a message that was sent twice is absorbed.'),
  ];
}

function waitingText(
  { commandLine }: Pick<Deployment, 'commandLine'>,
  { waiting }: Redriven,
  verb: string,
): string[] {
  if (waiting.length === 0) return [];
  const ids = waiting.slice(0, SHOWN_MAX).map(nameOf);
  const more = waiting.length > SHOWN_MAX ? ' …' : '';
  return [
    prose(
      `${paint.red('No result')}: ${waiting.length} redriven but not ${verb} yet (${ids.join(', ')}${more})`,
    ),
    prose(`${keptText(waiting)}Use a longer --wait, or see what they wait for:`),
    `  ${commandLine(shell`why ${ids[0] ?? ''}`)}`,
  ];
}

/** The dead letter of an ordered message stays until its message has ended. */
function keptText(waiting: readonly DeadLetter[]): string {
  const kept = waiting.filter(({ isOrdered }) => isOrdered).length;
  return kept === 0
    ? ''
    : `${many(kept, 'dead letter')} of ordered messages ${kept === 1 ? 'stays' : 'stay'} until that has happened: repeat the command then. `;
}

/** The causes to fix, each with the command that redrives its dead letters alone. */
function failedAgainText(
  { commandLine }: Pick<Deployment, 'commandLine'>,
  { source, received }: RedrivePlan,
  { back, retrying = [], untried }: Redriven,
  causes: readonly CauseOutcome[],
): string[] {
  const failures = [...back, ...retrying];
  const example = causes.find(({ failedAgain }) => failedAgain !== null)?.example;
  if (failures.length === 0 || example === undefined) return [];
  const byCause = new Map<string, DeadLetter[]>();
  const add = (cause: string, deadLetter: DeadLetter) =>
    byCause.set(cause, [
      ...(byCause.get(cause) ?? []),
      { ...deadLetter, fingerprint: cause, row: undefined },
    ]);
  for (const { deadLetter, fingerprint } of failures) add(fingerprint, deadLetter);
  for (const { deadLetter, why } of untried)
    if (why === 'failed-again') add(deadLetter.fingerprint ?? '', deadLetter);
  // Those that failed again are dead letters of their new causes.
  const ids = new Set(failures.map(({ deadLetter }) => deadLetter.id));
  const others = received.deadLetters.filter(({ id }) => !ids.has(id));
  const after = [...others, ...[...byCause.values()].flat().filter(({ id }) => ids.has(id))];
  const commands = [...byCause.values()]
    .toSorted((a, b) => b.length - a.length)
    .map((letters) => commandLine(shell`dlq redrive ${[source.name, ...selecting(letters, after, nameOf)]}`));
  return [
    `${paint.red('Failed again')}: ${failures.length}. For details:`,
    `  ${commandLine(shell`why ${example}`)}`,
    prose('Once its cause is fixed, redrive the dead letters of that cause alone:'),
    ...commands.slice(0, SHOWN_MAX).map((command) => `  ${command}`),
    ...(commands.length > SHOWN_MAX ? [`  …; ${commands.length - SHOWN_MAX} more causes are above`] : []),
  ];
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
  const ids = (choice.ids ?? []).filter((id) =>
    untried.some(({ deadLetter }) => [deadLetter.id, deadLetter.eventId].includes(id)),
  );
  const limit = options.limit === undefined ? undefined : untried.length;
  return [
    `${paint.red('Stopped')}.${open} ${many(untried.length, 'dead letter')} ${untried.length === 1 ? 'remains' : 'remain'}. To continue:`,
    applyLine(deployment, source.name, { ...choice, ids }, { ...options, limit }),
  ];
}

/** The commands for those that were not tried although their causes may be fixed. */
function untriedText(
  deployment: Pick<Deployment, 'commandLine'>,
  { source, choice }: RedrivePlan,
  { untried }: Redriven,
  options: RedrivePlanOptions,
): string[] {
  const causes = untried.filter(({ why }) => why === 'failed-again' || why === 'too-many-failures');
  const behind = untried.filter(({ why }) => why === 'predecessor').length;
  const ids = (choice.ids ?? []).filter((id) =>
    untried.some(({ deadLetter }) => [deadLetter.id, deadLetter.eventId].includes(id)),
  );
  return [
    ...(behind === 0
      ? []
      : [
          prose(
            `${many(behind, 'dead letter')} ${behind === 1 ? 'waits' : 'wait'} for earlier events: repeat the command once those are processed.`,
          ),
        ]),
    ...(causes.length === 0
      ? []
      : [
          prose(
            `To try ${causes.length === 1 ? 'the one that was' : 'those that were'} not tried once, whatever fails:`,
          ),
          applyLine(deployment, source.name, { ...choice, ids }, { ...options, keepGoing: true }),
        ]),
  ];
}

/** Those that were superseded meanwhile need the same help as those that were superseded before. */
function judgedAfter(judged: readonly JudgedDeadLetter[], { superseded }: Redriven): JudgedDeadLetter[] {
  // By id: the report has copies.
  const ids = new Set(superseded.map(({ id }) => id));
  return judged.map((one) => (ids.has(one.id) ? { ...one, verdict: 'superseded' } : one));
}

/** The id by which other commands find a dead letter, also once its message is another one. */
function nameOf({ id, eventId }: DeadLetter): string {
  return eventId ?? id;
}
