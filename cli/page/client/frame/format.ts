import { isTime } from '../../../../lambdas/runtime/base/clock.ts';
import { HOUR_MS } from '../../../../lambdas/runtime/base/units.ts';
import { findingCounts, NOTHING_BROKEN } from '../../../reports/findings/finding-counts.ts';
import { duration } from '../../../terminal/times.ts';
import type { StatusDocument } from '../../server/protocol.ts';

/** A duration as its largest unit, e.g. `3 s`: for ages that change while one looks at them. */
export function roughly(ms: number): string {
  return duration(Math.max(ms, 1_000)).split(' ').slice(0, 2).join(' ');
}

/** A whole number in groups of three, e.g. `10,000`. */
export function count(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 0 });
}

/** A number with its noun, e.g. `1 message`, `2 messages`. */
export function many(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** A rate per second, e.g. `0.4/s`, `12/s`. */
export function rate(perS: number): string {
  return `${perS > 0 && perS < 9.95 ? perS.toFixed(1) : count(Math.round(perS))}/s`;
}

/** The mean rate of a minute, e.g. `1.2/s`; less than 1 per second as the number of the minute, e.g. `12/min`. @param perS - of each interval of the last minute */
export function minuteRate(perS: readonly number[]): string {
  if (perS.length === 0) return '–';
  const mean = perS.reduce((sum, one) => sum + one, 0) / perS.length;
  return mean > 0 && mean < 1 ? `${count(Math.max(1, Math.round(mean * 60)))}/min` : rate(mean);
}

/** A time of day in UTC to the millisecond; `?` for an invalid one. */
export function preciseTime(ms: number): string {
  return isTime(ms) ? new Date(ms).toISOString().slice(11, 23) : '?';
}

/** A long id as the part that a list hides and its end. An event id begins with its time, so the beginnings of neighbors are equal. */
export function idParts(id: string): readonly [start: string, end: string] {
  const characters = [...id];
  if (characters.length <= 13) return ['', id];
  return [characters.slice(0, -8).join(''), characters.slice(-8).join('')];
}

/** As the alarm for an expiring dead letter, by default. */
const BROKEN_MS = 24 * HOUR_MS;

/** Three days: a long weekend. */
const LOOK_MS = 72 * HOUR_MS;

/**
 * The urgency of a permanent deletion.
 *
 * @param expiresAt - epoch milliseconds; `null`: it is kept until an operator decides
 */
export function urgencyOf(expiresAt: number | null, now: number): 'ok' | 'look' | 'broken' {
  if (expiresAt === null || expiresAt - now >= LOOK_MS) return 'ok';
  return expiresAt - now < BROKEN_MS ? 'broken' : 'look';
}

/** `ok`: done or well. `look`: may be in trouble. `broken`: action is required. `busy`: under way. `idle`: nothing to say. */
export type StateName = 'ok' | 'look' | 'broken' | 'busy' | 'idle';

const STATES: Readonly<Record<string, StateName>> = {
  processed: 'ok',
  published: 'ok',
  completed: 'ok',
  resolved: 'ok',
  discarded: 'idle',
  cancelled: 'idle',
  scheduled: 'idle',
  expired: 'idle',
  waiting: 'busy',
  working: 'busy',
  limited: 'busy',
  processing: 'busy',
  pending: 'busy',
  publishing: 'busy',
  failed: 'look',
  retrying: 'look',
  abandoned: 'look',
  unproven: 'look',
  'not arrived': 'look',
  released: 'look',
};

/** The states, that which most requires action first. */
export const WORST_FIRST: readonly StateName[] = ['broken', 'look', 'busy', 'idle', 'ok'];

/** The state of a word of the command: a message's or event's state, in any case. Unknown words require a look. */
export function stateOf(word: string): StateName {
  return STATES[word.toLowerCase()] ?? 'broken';
}

/** The one line of the verdict: the tab's title and the page's live region. */
export interface Headline {
  readonly is: 'ok' | 'look' | 'broken' | 'idle';
  /** E.g. `2 problems, 1 warning`. */
  readonly text: string;
}

/** The verdict of a status in a few words: acknowledged findings do not count. @param status - `null` before the first reading */
export function headlineOf(
  status: {
    readonly findings: readonly Pick<StatusDocument['findings'][number], 'state' | 'acknowledged'>[];
    readonly wiring: Pick<StatusDocument['wiring'], 'notChecked'>;
  } | null,
): Headline {
  if (status === null) return { is: 'idle', text: 'Reading' };
  const counts = findingCounts(status.findings, status.wiring);
  const [worst] = counts;
  if (worst === undefined) return { is: 'ok', text: capitalized(NOTHING_BROKEN) };
  // Every line of the list counts, so that the two agree.
  return { is: worst.is, text: counts.map(({ text }) => text).join(', ') };
}

/** The words of the command at the beginning of a line. */
export function capitalized(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/**
 * The first sentence of a finding, for one line: a resource's name, which begins with that of its stack, is cut to its end.
 *
 * @example
 * ```ts
 * firstLine('its rule mailroom-prod-inventory-Rule79E5F8A5-B45F79174BC23 is disabled. Restore it'); // 'its rule …9174BC23 is disabled'
 * ```
 */
export function firstLine(text: string): string {
  const [first = ''] = text.split(/\.(?: |$)/);
  return first.replaceAll(/[\w-]{33,}/g, (name) => `…${name.slice(-8)}`);
}

/** Items by a key, in the order in which the keys come first. */
export function groupsOf<Key, Item>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}

/** The error of the deployed code for a message, e.g. `INVALID_PAYLOAD: at total`; empty without one. */
export function errorText({
  code,
  message,
}: {
  readonly code?: string | null | undefined;
  readonly message?: string | null | undefined;
}): string {
  return [code, message].filter(Boolean).join(': ');
}
