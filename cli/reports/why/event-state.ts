import { readable, type UnreadableRow } from '../../../lambdas/runtime/store/stored-rows.ts';
import { unreadableText } from '../../deployment/row-text.ts';
import { clipped } from '../../terminal/output.ts';
import { type ShellText, shell } from '../../terminal/shell.ts';
import { duration, time } from '../../terminal/times.ts';
import type { Checked } from '../checks/check.ts';
import type { PassedOver } from '../order/passed-over.ts';
import type { Warning } from '../status/consumer-warnings.ts';
import type { MessageOrders } from './message-orders.ts';
import type { RedriveCheck } from './redrive-check.ts';
import type { TracedEvent } from './trace.ts';

/** The states of an event, the worst first. Down to `late`, action is required. */
export const STATES = [
  'dead',
  'rejected',
  'dead-lettered',
  'undelivered',
  'missing',
  'unreadable',
  'undeclared',
  'stuck',
  'blocked',
  'superseded',
  'late',
  'retrying',
  'processing',
  'waiting',
  'publishing',
  'unproven',
  'scheduled',
  'discarded',
  'processed',
  'cancelled',
] as const;

/** The verdict on a chain of events: the worst state of any of them. */
export interface WhyVerdict extends StateText {
  readonly eventId: string;
  readonly consumer?: string | undefined;
}

/** A state of an event, with the text that explains it. */
export interface StateText {
  readonly state: (typeof STATES)[number];
  /** The sentences for the operator: where it is, what is wrong, which attempt, when the next is, what happens if that fails. */
  readonly text: string;
  /** The command to run; `null` if none is needed. */
  readonly next: string | null;
  /** The text in parts, of an event or message that waits although it should not. */
  readonly delay?: Delay | undefined;
}

/** The parts of a verdict on a delay: sentences without their commands, for a screen that labels them. */
export interface Delay {
  /** The place of the event or message, and since when it waits. */
  readonly place: string;
  /** The problem that keeps it there, or may keep it there; `null` if nothing is known. */
  readonly problem: string | null;
  /** The part was perhaps stopped on purpose: ask before you start it. */
  readonly asksFirst: boolean;
  /** A command to run before `next`: it shows who stopped the part, or which of the possible problems it is; `null` without one. */
  readonly before: string | null;
}

/** A comparator for `sort`: the worst verdict first. */
export function worstFirst(a: WhyVerdict, b: WhyVerdict): number {
  return STATES.indexOf(a.state) - STATES.indexOf(b.state);
}

/** True if an operator must act. */
export function isActionRequired({ state }: Pick<WhyVerdict, 'state'>): boolean {
  return STATES.indexOf(state) <= STATES.indexOf('late');
}

/** Dependencies of a verdict besides the rows. */
export interface WhyContext {
  readonly now: number;
  /** See `Deployment.commandLine`. */
  readonly commandLine: (command: ShellText) => string;
  /** See `Deployment.awsLine`. */
  readonly awsLine: (command: ShellText) => string;
  /** The name of the Mailroom table. */
  readonly tableName: string;
  /** The number of shards that the sweep reads; absent if it was not read. */
  readonly sweptShards?: number | undefined;
  /** The sources that the relay publishes; absent if the directory does not list them. */
  readonly sources?: readonly string[] | undefined;
  /** The verdict of a redrive on one dead letter; absent if it was not checked. */
  readonly redrive?: RedriveCheck | undefined;
  /** The wiring of the parts for which the events wait; absent if it was not checked. */
  readonly wiring?: Checked | undefined;
  /** The consumers that claim or finish nothing. @default they were not read */
  readonly looks?: readonly Warning[] | undefined;
  /** The orders of the messages that strict consumers have not applied. @default they were not read */
  readonly orders?: MessageOrders | undefined;
  /** The changes that passed over numbers of strict consumers. @default they were not read */
  readonly passedOver?: PassedOver | undefined;
}

/** Returns the context of an event or a consumer. @param table - of its Mailroom; absent for the selected one */
export type ContextAt = (table: string | undefined) => WhyContext;

/**
 * The verdict on an unreadable row: its event's state is unknown, and the command shows the row.
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
    text: `${subject} ${unreadableText(unreadable)}. Run the command with the deployed version of cdk-mailroom. If that cannot read the row either, it was changed by hand: correct the attribute.`,
    next: awsLine(shell`dynamodb get-item --consistent-read --table-name ${tableName} --key ${key}`),
  };
}

/** An event's type and id. */
export function nameOf({ eventId, ...event }: TracedEvent): string {
  return `${clipped(typeOf(event) ?? 'Event')} ${eventId}`;
}

/** The type of an event, from any of its rows that can be read. */
export function typeOf({
  row,
  messages,
  atSources = [],
}: Pick<TracedEvent, 'row' | 'messages' | 'atSources'>): string | undefined {
  const rows = [...messages, ...atSources];
  return readable(row)?.type ?? rows.flatMap((message) => readable(message.row)?.type ?? [])[0];
}

/** A time relative to now, with the time itself; a past one is due `now`. */
export function inTime(at: number, now: number): string {
  return at > now ? `in ${duration(at - now)} (${time(at)})` : `now (due ${time(at)})`;
}
