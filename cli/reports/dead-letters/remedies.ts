import { SHARDS_MAX } from '../../../lambdas/runtime/store/outbox-partition.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { prose } from '../../terminal/prose.ts';
import { hours, type ShellText, shell } from '../../terminal/shell.ts';
import { fixLine } from '../findings/findings.ts';
import { hasCause } from './choice.ts';
import { groupsOf } from './dead-letter-text.ts';
import { type DeadLetter, type DeadLetterSource, rejectionCode } from './dead-letters.ts';
import type { JudgedDeadLetter, RedriveVerdict } from './redrive-plan.ts';
import { inboxId } from './standing.ts';
import { verdictWords } from './verdict-words.ts';

/** Dependencies of {@link remediesText}. */
export type RemedyDeps = Pick<Deployment, 'clock' | 'commandLine' | 'awsLine'>;

/** The most commands of one remedy. */
const COMMANDS_MAX = 5;

/** The most ids of one command. */
const IDS_MAX = 20;

/**
 * The remedies for the dead letters that a redrive does not send: a sentence for each verdict, and commands to paste.
 *
 * @param judged - the dead letters of the list or plan
 * @param all - all dead letters that were received: a command for some of them must not select others
 */
export function remediesText(
  deps: RemedyDeps,
  source: DeadLetterSource,
  judged: readonly JudgedDeadLetter[],
  all: readonly DeadLetter[],
): string[] {
  const { clock, commandLine } = deps;
  const unread = judged.filter((letter) => isUnread(source, letter));
  const commandsOf: Remedies = {
    fails: (fails) => failing(source, fails, all, clock.now()),
    superseded: (letters) => letters.map(({ id }) => shell`dlq discard ${source.name} ${id}`),
    stale: (letters) => letters.map(({ id }) => resendLine(source.name, id)),
    // The message may still be in the queue: the inbox absorbs a duplicate, and the row of the old event refuses any other event.
    unsent: (letters) => letters.map(({ id }) => resendLine(source.name, id)),
    'too-old': (letters) => letters.map((letter) => tooOld(source, letter)),
    'out-of-order': (letters) => letters.flatMap(({ place }) => place?.block?.next ?? []),
    busy: () => [],
    unreadable: (letters) => letters.map((letter) => shell`why ${inboxId(letter)}`),
    'row-deleted': (letters) =>
      letters.map((letter) => shell`messages resolve ${[consumerOf(source), inboxId(letter)]}`),
  };
  const others = Object.entries(commandsOf).flatMap(([name, commandsFor]) => {
    const verdict = name as keyof Remedies;
    const letters = judged.filter(
      (deadLetter) => deadLetter.verdict === verdict && !unread.includes(deadLetter),
    );
    if (letters.length === 0) return [];
    const { label, todo } = verdictWords(verdict, source.name, letters.length);
    const commands = [...new Set(commandsFor(letters))];
    const more = commands.length > COMMANDS_MAX ? ['  …; --verbose shows each dead letter'] : [];
    const shown = commands.slice(0, COMMANDS_MAX).map((command) => `  ${commandLine(command)}`);
    return [prose(`${letters.length} ${label}. ${todo}${shown.length > 0 ? ':' : '.'}`), ...shown, ...more];
  });
  return [...unreadText(deps, source, unread, all), ...others];
}

/** True for a message that its consumer cannot read. */
function isUnread(source: DeadLetterSource, { verdict, eventId }: JudgedDeadLetter): boolean {
  return 'consumer' in source && verdict === 'fails' && eventId === undefined;
}

/** The remedies for unreadable messages: a rule that changes events comes first, because each of these messages is an event. */
function unreadText(
  deps: RemedyDeps,
  source: DeadLetterSource,
  unread: readonly JudgedDeadLetter[],
  all: readonly DeadLetter[],
): string[] {
  const [first] = unread;
  if (first === undefined) return [];
  const { rule } = first;
  const [letters, them] = unread.length === 1 ? ['dead letter', 'it'] : ['dead letters', 'them'];
  const count = `${unread.length} unreadable ${letters}`;
  const discards = failing(source, unread, all, deps.clock.now());
  const plans = discards.slice(0, COMMANDS_MAX).map((command) => `  ${deps.commandLine(command)}`);
  const sends = `The plan of a discard looks for the events of ${them} in the outbox, and sends those that were not received before it discards ${them}`;
  if (rule === undefined)
    return [
      prose(`${count}. If they should be readable, deploy code that reads ${them}, and redrive. ${sends}:`),
      ...plans,
    ];
  return [
    prose(`${count}: ${rule.text}:`),
    ...[rule.fix, rule.followUp].flatMap((words) =>
      words === undefined ? [] : [`  ${fixLine(words, deps)}`],
    ),
    prose(`${sends}:`),
    ...plans,
  ];
}

/** The commands for the dead letters of each verdict that a redrive does not send. */
type Remedies = Readonly<
  Record<
    Exclude<RedriveVerdict, 'runs' | 'handled'>,
    (letters: readonly JudgedDeadLetter[]) => readonly ShellText[]
  >
>;

function failing(
  source: DeadLetterSource,
  fails: readonly JudgedDeadLetter[],
  all: readonly DeadLetter[],
  now: number,
): ShellText[] {
  const discards = groupsOf(fails.map(asLine)).map((group) => {
    const words = selecting(
      group.map(({ deadLetter }) => deadLetter),
      all,
    );
    return shell`dlq discard ${[source.name, ...words]}`;
  });
  if (source.kind !== 'stream') return discards;
  const since = hours(now - (fails[0]?.sentAt ?? now));
  return [shell`sweep ${['--since', since, '--shards', `${SHARDS_MAX}`]}`, ...discards];
}

/** The command that plans a resend, with a file name to replace. */
export function resendLine(source: string, id: string, options: readonly string[] = []): ShellText {
  return shell`dlq resend ${[source, id, '--data', 'data.json', ...options]}`;
}

/** Without a row, a message cannot be allowed: only its consumer's own rejection is known to be for its age. */
function tooOld(source: DeadLetterSource, deadLetter: JudgedDeadLetter): ShellText {
  const [name, id] = [consumerOf(source), inboxId(deadLetter)];
  return deadLetter.row === undefined
    ? shell`messages resolve ${name} ${id}`
    : shell`messages allow ${name} ${id}`;
}

function consumerOf(source: DeadLetterSource): string {
  return 'consumer' in source ? source.consumer.name : source.name;
}

/** The group of a judged dead letter. */
function asLine(deadLetter: JudgedDeadLetter) {
  return { deadLetter, label: deadLetter.verdict, refusal: deadLetter };
}

/** Stored text that is printed escaped: as an argument it would match nothing. */
const ESCAPED = /\\u[0-9a-f]{4}/;

/** The words that select exactly these dead letters: by cause if no other has it, else by id. @param idOf - @default the id of the dead letter */
export function selecting(
  wanted: readonly DeadLetter[],
  all: readonly DeadLetter[],
  idOf: (deadLetter: DeadLetter) => string = ({ id }) => id,
): string[] {
  const [first] = wanted;
  const isExact = (typed: string) =>
    all.filter((deadLetter) => hasCause(deadLetter, typed)).length === wanted.length;
  const texts = [rejectionCode(first?.row), first?.fingerprint].filter((typed) => typed !== undefined);
  const exact = texts.find((typed) => typed !== '' && !ESCAPED.test(typed) && isExact(typed));
  if (exact !== undefined && wanted.length > 1) return ['--cause', exact];
  return wanted.slice(0, IDS_MAX).map(idOf);
}
