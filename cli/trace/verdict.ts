import { MINUTE_MS } from '../../lambdas/runtime/relay/sweep-minutes.ts';
import { duration, time } from '../frame/output.ts';
import type { TracedEvent } from './trace-reader.ts';

/** Where an event is, from the worst to the best. The first seven need somebody. */
const STATES = [
  'dead',
  'rejected',
  'dead-lettered',
  'undelivered',
  'missing',
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
  readonly commandLine: (command: string) => string;
  /** A command of the AWS CLI, see `Session.awsLine`. */
  readonly awsLine: (command: string) => string;
}

/** An event as it is called in a text. */
export function nameOf({ eventId, row, messages }: TracedEvent): string {
  const type = row?.type ?? messages.find((message) => message.row?.type !== undefined)?.row?.type ?? 'Event';
  return `${type} ${eventId}`;
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
