import { SHARDS_MAX } from '../../../lambdas/runtime/store/outbox-partition.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { prose } from '../../terminal/prose.ts';
import { hours, type ShellText, shell } from '../../terminal/shell.ts';
import { hasCause } from './choice.ts';
import { groupsOf } from './dead-letter-text.ts';
import { type DeadLetter, type DeadLetterSource, rejectionCode } from './dead-letters.ts';
import type { JudgedDeadLetter, RedriveVerdict } from './redrive-plan.ts';
import { inboxId } from './standing.ts';

/** Dependencies of {@link remediesText}. */
export type RemedyDeps = Pick<Deployment, 'clock' | 'commandLine'>;

/** The help for dead letters that a redrive does not send, with its commands. */
interface Remedy {
  readonly text: string;
  readonly commands: readonly ShellText[];
}

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
  { clock, commandLine }: RemedyDeps,
  source: DeadLetterSource,
  judged: readonly JudgedDeadLetter[],
  all: readonly DeadLetter[],
): string[] {
  const of = (verdict: RedriveVerdict) => judged.filter((deadLetter) => deadLetter.verdict === verdict);
  const remedies = [
    failing(source, of('fails'), all, clock.now()),
    superseded(source, of('superseded')),
    unsent(source, of('unsent')),
    tooOld(source, of('too-old')),
    outOfOrder(of('out-of-order')),
    busy(of('busy')),
    unreadable(of('unreadable')),
    rowDeleted(source, of('row-deleted')),
  ];
  return remedies.flatMap((remedy) => {
    if (remedy === undefined) return [];
    const commands = [...new Set(remedy.commands)];
    const more = commands.length > COMMANDS_MAX ? ['  …; --verbose shows each dead letter'] : [];
    const shown = commands.slice(0, COMMANDS_MAX).map((command) => `  ${commandLine(command)}`);
    return [prose(remedy.text), ...shown, ...more];
  });
}

function failing(
  source: DeadLetterSource,
  fails: readonly JudgedDeadLetter[],
  all: readonly DeadLetter[],
  now: number,
): Remedy | undefined {
  const [oldest] = fails;
  if (oldest === undefined) return undefined;
  const discards = groupsOf(fails.map(asLine)).map((group) => {
    const words = selecting(
      group.map(({ deadLetter }) => deadLetter),
      all,
    );
    return shell`dlq discard ${[source.name, ...words]}`;
  });
  const it = pronoun(fails);
  const count = `${fails.length} still ${fails.length === 1 ? 'fails' : 'fail'}`;
  if (source.kind === 'dead') {
    const text = `${count}, too large for EventBridge: have the producer write ${fails.length === 1 ? 'a smaller event' : 'smaller events'}, then discard ${it}:`;
    return { text, commands: discards };
  }
  if (source.kind === 'stream') {
    const text = `${count}: no batch of the stream is named. Sweep from before the first send, then discard ${it}:`;
    const since = hours(now - (oldest.sentAt ?? now));
    return { text, commands: [shell`sweep ${['--since', since, '--shards', `${SHARDS_MAX}`]}`, ...discards] };
  }
  const text = `${count}: the deployed code of ${source.consumer.name} refuses ${it}. Deploy code that reads ${it}, then redrive ${it}. If not needed, discard ${it}:`;
  return { text, commands: discards };
}

function superseded(source: DeadLetterSource, letters: readonly JudgedDeadLetter[]): Remedy | undefined {
  if (letters.length === 0) return undefined;
  const [it, its] = letters.length === 1 ? ['it', 'its'] : ['them', 'their'];
  const text = `${letters.length} superseded: kept, because a redrive would not run ${it}. If ${its} changes are still needed, do the work by hand, or have ${its} producer publish ${it} under the next number. Then discard ${it}:`;
  return { text, commands: letters.map(({ id }) => shell`dlq discard ${source.name} ${id}`) };
}

/** Its message may still be in the queue: the inbox absorbs a duplicate, and the row of the old event refuses any other event. */
function unsent(source: DeadLetterSource, letters: readonly JudgedDeadLetter[]): Remedy | undefined {
  if (letters.length === 0 || source.kind === 'dead' || source.kind === 'stream') return undefined;
  const [are, events] = letters.length === 1 ? ['is', 'an event'] : ['are', 'events'];
  const text = `${letters.length} ${are} replaced by ${events} that ${source.consumer.name} has not received: kept, because the resend may have stopped before it sent ${pronoun(letters)}. Repeat the resend with the same data, or with other data:`;
  return { text, commands: letters.map(({ id }) => resendLine(source.name, id)) };
}

/** The command that plans a resend, with a file name to replace. */
export function resendLine(source: string, id: string, options: readonly string[] = []): ShellText {
  return shell`dlq resend ${[source, id, '--data', 'data.json', ...options]}`;
}

/** Without a row, a message cannot be allowed: only its consumer's own rejection is known to be for its age. */
function tooOld(source: DeadLetterSource, old: readonly JudgedDeadLetter[]): Remedy | undefined {
  if (old.length === 0 || source.kind === 'dead' || source.kind === 'stream') return undefined;
  const { name } = source.consumer;
  const decide = (deadLetter: JudgedDeadLetter) =>
    deadLetter.row === undefined
      ? shell`messages resolve ${name} ${inboxId(deadLetter)}`
      : shell`messages allow ${name} ${inboxId(deadLetter)}`;
  const isKnown = old.some(({ row }) => row !== undefined);
  const todo = isKnown
    ? 'Allow only what you know has not run, then redrive it:'
    : 'If it has not, do the work by hand, then resolve it:';
  const text = `${old.length} too old, and may have run before. ${todo}`;
  return { text, commands: old.map(decide) };
}

function outOfOrder(letters: readonly JudgedDeadLetter[]): Remedy | undefined {
  if (letters.length === 0) return undefined;
  const [would, an] =
    letters.length === 1 ? ['it would wait', 'its aggregate'] : ['they would wait', 'their aggregates'];
  const text = `${letters.length} out of order: ${would} for an earlier number of ${an}, and be rejected again. Fix what is first:`;
  return { text, commands: letters.flatMap(({ place }) => place?.block?.next ?? []) };
}

function busy(letters: readonly JudgedDeadLetter[]): Remedy | undefined {
  if (letters.length === 0) return undefined;
  const text = `${letters.length} busy: a worker holds ${pronoun(letters)}, or a retry is due soon. Repeat the command in a minute.`;
  return { text, commands: [] };
}

function unreadable(letters: readonly JudgedDeadLetter[]): Remedy | undefined {
  if (letters.length === 0) return undefined;
  const text = `${letters.length} with a row that cannot be read: kept. To see what to do:`;
  return { text, commands: letters.map((letter) => shell`why ${inboxId(letter)}`) };
}

function rowDeleted(source: DeadLetterSource, letters: readonly JudgedDeadLetter[]): Remedy | undefined {
  if (letters.length === 0 || source.kind === 'dead' || source.kind === 'stream') return undefined;
  const text = `${letters.length} whose inbox row was deleted by hand: kept. Which side effects have happened is unknown, and a redrive would repeat them. Ask their providers; finish the work by hand where needed, then resolve:`;
  const { name } = source.consumer;
  return { text, commands: letters.map((letter) => shell`messages resolve ${[name, inboxId(letter)]}`) };
}

function pronoun(letters: readonly unknown[]): string {
  return letters.length === 1 ? 'it' : 'them';
}

/** The group of a judged dead letter. */
function asLine(deadLetter: JudgedDeadLetter) {
  return { deadLetter, label: deadLetter.verdict, refusal: deadLetter };
}

/** Stored text that is printed escaped: as an argument it would match nothing. */
const ESCAPED = /\\u[0-9a-f]{4}/;

/** The words that select exactly these dead letters: by cause if no other has it, else by id. */
function selecting(wanted: readonly DeadLetter[], all: readonly DeadLetter[]): string[] {
  const [first] = wanted;
  const isExact = (typed: string) =>
    all.filter((deadLetter) => hasCause(deadLetter, typed)).length === wanted.length;
  const texts = [rejectionCode(first?.row), first?.fingerprint].filter((typed) => typed !== undefined);
  const exact = texts.find((typed) => typed !== '' && !ESCAPED.test(typed) && isExact(typed));
  if (exact !== undefined && wanted.length > 1) return ['--cause', exact];
  return wanted.slice(0, IDS_MAX).map(({ id }) => id);
}
