import { MINUTE_MS } from '../../lambdas/runtime/relay/sweep-minutes.ts';
import { readable } from '../../lambdas/runtime/store/stored-rows.ts';
import type { Key } from '../../lambdas/runtime/store/table.ts';
import { clipped, duration, time } from '../frame/output.ts';
import { type ShellText, shell } from '../frame/shell.ts';
import { unreadableText } from '../reading/row-text.ts';
import type { TracedEvent } from './trace-reader.ts';

/** Where an event is, from the worst to the best. The first nine need somebody. */
const STATES = [
  'dead',
  'rejected',
  'dead-lettered',
  'undelivered',
  'missing',
  'unreadable',
  'undeclared',
  'stuck',
  'late',
  'retrying',
  'processing',
  'waiting',
  'publishing',
  'unproven',
  'discarded',
  'processed',
] as const;

type WhyState = (typeof STATES)[number];

/** What is to be said of a chain of events: the worst that is true of any of them. */
export interface Verdict {
  readonly state: WhyState;
  readonly eventId: string;
  readonly consumer?: string | undefined;
  /** Where it is, what is wrong, which attempt, when it is tried next, what happens if that fails. */
  readonly text: string;
  /** One command to run; `null` when nobody has to. */
  readonly next: string | null;
}

/** Whether one verdict is worse than another: what `sort` takes. */
export function worstFirst(a: Verdict, b: Verdict): number {
  return STATES.indexOf(a.state) - STATES.indexOf(b.state);
}

/** Whether somebody is needed. */
export function needsSomebody({ state }: Verdict): boolean {
  return STATES.indexOf(state) <= STATES.indexOf('late');
}

/** What a verdict is given besides the rows. */
export interface VerdictContext {
  readonly now: number;
  /** A command with the options of this run, see `Session.commandLine`. */
  readonly commandLine: (command: ShellText) => string;
  /** A command of the AWS CLI, see `Session.awsLine`. */
  readonly awsLine: (command: ShellText) => string;
  /** The Mailroom table. */
  readonly tableName: string;
  /** The sources that the relay publishes; absent where the directory does not name them. */
  readonly sources?: readonly string[] | undefined;
}

/**
 * A row that cannot be read: nothing is known of what it stands for, and the row itself is what to look at.
 *
 * @param subject - the beginning of the sentence, up to the row
 */
export function ofUnreadable(
  subject: string,
  problem: string,
  { PK, SK }: Key,
  { awsLine, tableName }: VerdictContext,
): Omit<Verdict, 'eventId' | 'consumer'> {
  const key = JSON.stringify({ PK: { S: PK }, SK: { S: SK } });
  return {
    state: 'unreadable',
    text: `${subject} ${unreadableText(problem)}. Use the mailroom command of the version that is deployed; if that cannot read it either, somebody changed the row by hand.`,
    next: awsLine(shell`dynamodb get-item --consistent-read --table-name ${tableName} --key ${key}`),
  };
}

/** An event as it is called in a text. */
export function nameOf({ eventId, row, messages }: TracedEvent): string {
  return `${clipped(typeOf({ row, messages }) ?? 'Event')} ${eventId}`;
}

/** The type of an event, by whichever of its rows can be read. */
export function typeOf({ row, messages }: Pick<TracedEvent, 'row' | 'messages'>): string | undefined {
  return readable(row)?.type ?? messages.flatMap((message) => readable(message.row)?.type ?? [])[0];
}

/** A time to come, or one that has come. */
export function inTime(at: number, now: number): string {
  return at > now ? `in ${duration(at - now)} (${time(at)})` : `now (since ${time(at)})`;
}

/** A command is typed some minutes after it was shown, and must still reach back as far. */
const TYPED_WITHIN_MS = 10 * MINUTE_MS;

/** A range that reaches back to an age, in whole hours. */
export function hours(ageMs: number): string {
  return `${Math.ceil((ageMs + TYPED_WITHIN_MS) / (60 * MINUTE_MS))}h`;
}
