import type { LimitPlaces } from '../store/inbox-row.ts';
import { type Bucket, LINE_MAX_MS, type TokenRate, type TokenStep, tokenAt } from './limit-bucket.ts';

/** A message that asks for a place. */
export interface PlaceAsked {
  readonly concurrency: number;
  /** Its entry in {@link LimitPlaces.holders}. */
  readonly holder: string;
  /** Its name as the head of the line. */
  readonly ticket: string;
  /** The time since which it waits, epoch milliseconds. Absent: it has not waited. */
  readonly since?: number | undefined;
  /** The receives that its queue has left for it. Absent: without a maximum. */
  readonly receivesLeft?: number | undefined;
}

/** One try of it. */
export interface PlaceTry extends PlaceAsked {
  /** The longest time for which its worker waits for a token, milliseconds. */
  readonly patienceMs: number;
  /** A random factor of its pause, 0.5 to 1.5: messages that became due together do not meet again and again. */
  readonly spread: number;
}

/** The standing of a message beside the head of the line. `behind`: a place is kept for another one, which has waited longer. */
export type LineStanding = 'no-head' | 'head' | 'older' | 'behind';

/** The next change of a bucket with places, from what was read of it. Each is written under its own condition, which makes it safe. */
export type PlaceStep =
  | {
      readonly is: 'take';
      readonly token: TokenStep | 'no-rate';
      readonly standing: LineStanding;
      /** The places of which one must be free. */
      readonly room: number;
      /** Some holders have stopped: the set as it was read is replaced. */
      readonly holders?:
        | { readonly asRead: ReadonlySet<string>; readonly live: readonly string[] }
        | undefined;
    }
  /** It has waited longest: it becomes, or stays, the head, and asks again. */
  | {
      readonly is: 'be-head';
      readonly standing: LineStanding;
      readonly headAt: number;
      readonly againAt: number;
      /** The message whose place it takes is in the line until it is delivered: newcomers do not pass it. */
      readonly lineUntil?: number | undefined;
    }
  /** The line ends before this time: the message is its end. */
  | { readonly is: 'begin-line'; readonly slotAt: number }
  | { readonly is: 'join-line' }
  /** It asks again at this time, and is not in the line: the line is too long, or newcomers would come behind its pause. */
  | { readonly is: 'stay-away'; readonly againAt: number };

/** The length of a run before one has been measured, milliseconds. */
const RUN_MS = 1_000;

/** The limits of the time between two slots, milliseconds. */
const SLOT_MIN_MS = 50;
const SLOT_MAX_MS = 120_000;

/** The longest time for which a message joins the line, milliseconds. Slots are guesses by the last runs, which must not bind those of the next hours. */
export const PLACE_LINE_MS = 600_000;

/** The shortest pause of the head before it asks again, milliseconds: a sixteenth of a run within these limits. */
const AGAIN_MIN_MS = 1_000;
const AGAIN_FIRST_MS = 30_000;

/** The longest pause of a message that has waited for less than 16 minutes, milliseconds. */
const AGAIN_MS = 120_000;

/** The share of its wait after which a message asks again that has waited for longer. */
const AGAIN_SHARE = 1 / 8;

/** With few receives left, that share is this number divided by them: 48 last for up to 4 days. */
const AGAIN_PER_RECEIVE = 4;

/** A head with so few receives left spreads them. With more, it asks as often as for a short run. */
const LAST_RECEIVES = 4;

/** A place is kept for the head for this much longer than until it is delivered again, milliseconds. */
export const HEAD_SPARE_MS = 30_000;

/** After the time of a head, the next one continues its pauses for this long, milliseconds: the place has not been free meanwhile. */
const HEAD_LATE_MS = 120_000;

/**
 * Decides the next step of a message that asks for a place of a limit with a concurrency. A run holds its place until it ends or its function has
 * certainly stopped, so a crash frees the place at that time, and no run that may still go on is without one.
 *
 *     the line, by slots:   A   B   C   D ...      newcomers join at its end
 *                           |
 *     the head: of those that found no place in their slot, the one that has waited longest. One place is kept for it.
 *
 * @param row - as it was read @default no run has a place
 */
export function placeStepAt(
  row: Bucket & LimitPlaces,
  pace: TokenRate | undefined,
  asked: PlaceTry,
  now: number,
): PlaceStep {
  const { lineUntil = 0, nextAt = 0, holders = new Set<string>() } = row;
  const { concurrency, patienceMs, since, spread, receivesLeft } = asked;
  const standing = standingOf(row, asked, now);
  const hasLine = lineUntil > now;
  const mayPass = since !== undefined || standing === 'head' || (!hasLine && standing === 'no-head');
  const token = pace === undefined ? 'no-rate' : tokenAt(nextAt, pace, patienceMs, now);
  const live = [...holders].filter((holder) => endOf(holder) > now);
  const room = standing === 'behind' ? concurrency - 1 : concurrency;
  if (mayPass && token !== undefined && live.length < room) {
    const replaced = live.length < holders.size ? { asRead: holders, live } : undefined;
    return { is: 'take', token, standing, room, holders: replaced };
  }
  if (
    mayPass &&
    token !== undefined &&
    live.length >= concurrency &&
    since !== undefined &&
    standing !== 'behind'
  ) {
    const { headUntil = 0 } = row;
    // The pauses of two that are late, and take turns as the head, grow as well.
    const headAt = headUntil > now - HEAD_LATE_MS ? (row.headAt ?? now) : now;
    const firstMs = Math.min(AGAIN_FIRST_MS, (row.runMs ?? 0) / 16);
    const lastMs = lastPauseMs(live, now, receivesLeft);
    const pauseMs = Math.max(AGAIN_MIN_MS, firstMs, pauseAfter(now - headAt), lastMs);
    const displaced = standing === 'older' ? { lineUntil: Math.max(lineUntil, headUntil) } : {};
    return { is: 'be-head', standing, headAt, againAt: Math.ceil(now + pauseMs), ...displaced };
  }
  const pauseMs = since === undefined ? 0 : pauseAfter(now - since, receivesLeft, spread);
  const slotMs = slotMsOf(row, pace, concurrency);
  const isLate = pauseMs > (token === undefined ? PLACE_LINE_MS : slotMs);
  if (isLate) return { is: 'stay-away', againAt: Math.ceil(now + pauseMs) };
  if (lineUntil > now + PLACE_LINE_MS) {
    const awayMs = Math.max(pauseMs, (PLACE_LINE_MS * (0.5 + spread)) / 2); // half of the line to all of it
    return { is: 'stay-away', againAt: Math.ceil(now + awayMs) };
  }
  const earliest = now + Math.max(pauseMs, slotMs);
  if (lineUntil > earliest) return { is: 'join-line' };
  return { is: 'begin-line', slotAt: Math.ceil(Math.max(earliest, token === undefined ? nextAt : 0)) };
}

/**
 * The pause before a message that found no place in its slot asks again: half of the time that it has waited, and an eighth of a long one, at most as
 * long as a queue hides it. So a run of 15 minutes costs it about 20 receives, 4 days about 70, and 14 days about 93. It grows as the receives that
 * its queue has left become few: they must not end before the wait.
 */
function pauseAfter(waitedMs: number, receivesLeft = Number.POSITIVE_INFINITY, spread = 1): number {
  const share = Math.max(AGAIN_SHARE, AGAIN_PER_RECEIVE / Math.max(1, receivesLeft));
  return Math.min(LINE_MAX_MS, Math.max(Math.min(AGAIN_MS, waitedMs / 2), waitedMs * share) * spread);
}

/** The pause of a head with few receives left, milliseconds: its last one is not before the first function that holds a place has stopped. */
function lastPauseMs(live: readonly string[], now: number, receivesLeft = Number.POSITIVE_INFINITY): number {
  if (receivesLeft > LAST_RECEIVES) return 0;
  return (Math.min(...live.map(endOf)) - now) / Math.max(1, receivesLeft);
}

function standingOf(
  { head, headSince = 0, headUntil = 0 }: LimitPlaces,
  { ticket, since }: PlaceAsked,
  now: number,
): LineStanding {
  if (head === ticket) return 'head'; // also if it comes late
  if (headUntil <= now) return 'no-head';
  return since !== undefined && since < headSince ? 'older' : 'behind';
}

/** The time between two slots of the line, milliseconds. */
export function slotMsOf({ runMs }: LimitPlaces, pace: TokenRate | undefined, concurrency: number): number {
  return Math.max(pace?.everyMs ?? 0, freeAfterMs(runMs, concurrency));
}

/** The time in which a place becomes free, by the estimate of a run, milliseconds. */
export function freeAfterMs(runMs = RUN_MS, concurrency: number): number {
  return Math.min(SLOT_MAX_MS, Math.max(SLOT_MIN_MS, Math.ceil(runMs / concurrency)));
}

/**
 * The new estimate after a run: a moving average. Slots that are too close cost receives, and slots that are too far apart leave places unused.
 *
 * @param runMs - the estimate before it @default the run is the first one
 */
export function estimateOf(ranMs: number, runMs = ranMs): number {
  return Math.ceil(runMs + (ranMs - runMs) / 4);
}

/** Makes the entry of a run. @param end - the time by which its function has certainly stopped, epoch milliseconds */
export function holderOf(end: number, fence: string): string {
  return `${Math.ceil(end)}/${fence}`;
}

function endOf(holder: string): number {
  return Number(holder.slice(0, holder.indexOf('/')));
}

/** Returns true if stored places can be used. */
export function arePlaces({
  holders,
  head,
  headSince,
  headAt,
  headUntil,
  runMs,
}: Readonly<Record<string, unknown>>): boolean {
  const numbers = [headSince, headAt, headUntil, runMs];
  return (
    numbers.every((number) => number === undefined || Number.isFinite(number)) &&
    (head === undefined || typeof head === 'string') &&
    (holders === undefined ||
      (holders instanceof Set &&
        [...holders].every((holder) => typeof holder === 'string' && endOf(holder) > 0)))
  );
}
