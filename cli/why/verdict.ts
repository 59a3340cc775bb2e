import { readable, type UnreadableRow } from '../../lambdas/runtime/store/stored-rows.ts';
import { clipped, duration, time } from '../frame/output.ts';
import { type ShellText, shell } from '../frame/shell.ts';
import { unreadableText } from '../reading/row-text.ts';
import type { TracedEvent } from './trace-reader.ts';

/** Where an event is, from the worst to the best. Down to `late`, action is required. */
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

/** What `why` says of a chain of events: the worst that is true of any of them. */
export interface WhyVerdict extends StateText {
  readonly eventId: string;
  readonly consumer?: string | undefined;
}

/** A state of an event, and its words. */
export interface StateText {
  readonly state: (typeof STATES)[number];
  /** Where it is, what is wrong, which attempt, when it is retried, what happens if that fails. */
  readonly text: string;
  /** One command to run; `null` when no action is required. */
  readonly next: string | null;
}

/** Compares two verdicts, the worst first: what `sort` takes. */
export function worstFirst(a: WhyVerdict, b: WhyVerdict): number {
  return STATES.indexOf(a.state) - STATES.indexOf(b.state);
}

/** Whether an operator has to act. */
export function isActionRequired({ state }: Pick<WhyVerdict, 'state'>): boolean {
  return STATES.indexOf(state) <= STATES.indexOf('late');
}

/** What a verdict is given besides the rows. */
export interface WhyContext {
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
 * A row that cannot be read: nothing is known of its event or message, and the row itself is what to look at.
 *
 * @param subject - the beginning of the sentence, up to the row
 */
export function unreadableRow(
  subject: string,
  { PK, SK, unreadable }: UnreadableRow,
  { awsLine, tableName }: WhyContext,
): StateText {
  const key = JSON.stringify({ PK: { S: PK }, SK: { S: SK } });
  return {
    state: 'unreadable',
    text: `${subject} ${unreadableText(unreadable)}. Use the mailroom command of the version that is deployed; if that cannot read it either, the row was changed by hand.`,
    next: awsLine(shell`dynamodb get-item --consistent-read --table-name ${tableName} --key ${key}`),
  };
}

/** The name of an event in a text: its type and its id. */
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
