import { isMailroomError } from '../../base/errors.ts';
import type { TokenAsked, TokenRate } from '../../inbox/limit-bucket.ts';
import {
  estimateOf,
  freeAfterMs,
  HEAD_SPARE_MS,
  type LineStanding,
  PLACE_LINE_MS,
  type PlaceAsked,
  type PlaceStep,
  type PlaceTry,
  placeStepAt,
  slotMsOf,
} from '../../inbox/limit-places.ts';
import { fraction } from '../backoff.ts';
import type { LimitRow } from '../inbox-row.ts';
import { writeWithRetry } from '../retry.ts';
import { conditionalUpdate, type RowChange, type RowCondition } from '../row-update.ts';
import type { Key } from '../table.ts';
import {
  allOf,
  BUCKET_TRIES,
  type BucketTable,
  differs,
  hasShortLine,
  hasToken,
  joining,
  type NoToken,
  noLine,
  type Token,
  takingToken,
  withNumbers,
  writeBucket,
} from './limit-bucket.ts';

/** The bucket of a message whose limit has a concurrency. */
export interface PlacesOf {
  readonly key: Key;
  /** Absent: the limit has no rate. */
  readonly pace?: TokenRate | undefined;
  readonly place: PlaceAsked;
}

/** Each wait of a worker for a place is longer than its last one: messages of one batch do not meet each time, and few writes are refused. */
const NAP_GROWTH = 1.5;

/** The answer of a bucket with places. */
export type PlaceAnswer = (
  | Token
  | NoToken
  /** The message has a place since an earlier try, whose answer was lost, and no token for certain. */
  | { readonly is: 'place' }
  /** It is the head of the line, and asks again at this time. */
  | { readonly is: 'head'; readonly againAt: number }
) & {
  /** The bucket was written with other numbers than these. */
  readonly ratesDiffer: boolean;
  /** The estimate of a run's length, milliseconds. */
  readonly runMs?: number | undefined;
  /** The time for which it has slept until a place was free, milliseconds. @default 0 */
  readonly sleptMs?: number | undefined;
};

/**
 * Takes a place and a token, or a slot in the line, in one conditional write; a refused write returns the bucket, from which the next one is decided.
 * While all places are taken, it asks again until its patience ends.
 *
 * @throws `UNREADABLE_ROW` if the bucket has a newer schema or cannot be used; the table's error, after which the message may have a place
 */
export async function takePlace(
  inbox: BucketTable,
  { key, pace, place }: PlacesOf,
  asked: TokenAsked,
): Promise<PlaceAnswer> {
  const { clock } = inbox;
  const numbers = { ...pace, concurrency: place.concurrency };
  const patientUntil = clock.now() + asked.patienceMs;
  const spread = 0.5 + fraction(inbox.random);
  let row: Partial<LimitRow> = {};
  let ratesDiffer = false;
  let sleptMs = 0;
  let naps = 0;
  for (let tries = 1; tries <= BUCKET_TRIES; tries += 1) {
    const now = clock.now();
    const given = { ...place, patienceMs: Math.max(0, patientUntil - now), spread, pace, row, now };
    const step = placeStepAt(row, pace, given, now);
    if (now < patientUntil && awaitsPlace(step, row, given)) {
      const napMs = Math.min(
        patientUntil - now,
        napOf(freeAfterMs(row.runMs, place.concurrency), naps, inbox.random),
      );
      await clock.sleep(napMs);
      sleptMs += napMs;
      naps += 1;
      tries = 0;
      // One may be free now: the condition decides.
      row = { ...row, holders: undefined };
      continue;
    }
    if (step.is === 'stay-away') return { is: 'slot', slotAt: step.againAt, ratesDiffer, sleptMs };
    const { change, condition } = writeOf(step, given);
    const { ok, item } = await writeBucket(inbox, key, withNumbers(change, numbers, now), condition);
    row = item;
    const rest = { ratesDiffer, sleptMs, runMs: row.runMs };
    if (ok) return { ...answerOf(step, row, given), ...rest };
    // The answer of an earlier try was lost.
    if (row.holders?.has(place.holder))
      return { ...(pace === undefined ? { is: 'token', startsAt: now } : { is: 'place' }), ...rest };
    ratesDiffer ||= differs(row, numbers);
  }
  return { is: 'busy', ratesDiffer, sleptMs };
}

interface PlaceAsking extends PlaceTry {
  readonly pace: TokenRate | undefined;
  readonly row: Partial<LimitRow>;
  readonly now: number;
}

/** Of 0.5 to 1.5 times the time in which a place becomes free. Whole milliseconds: stored times have no fraction. */
function napOf(freeMs: number, naps: number, random: BucketTable['random']): number {
  return Math.ceil((0.5 + fraction(random)) * NAP_GROWTH ** naps * freeMs);
}

/** Only places are missing, so one may become free at any time. */
function awaitsPlace(step: PlaceStep, { holders, ...row }: Partial<LimitRow>, given: PlaceAsking): boolean {
  if (step.is === 'take' || holders === undefined) return false;
  return placeStepAt(row, given.pace, given, given.now).is === 'take';
}

interface BucketWrite {
  readonly change: RowChange;
  readonly condition: RowCondition;
}

function writeOf(step: Exclude<PlaceStep, { readonly is: 'stay-away' }>, given: PlaceAsking): BucketWrite {
  const { now, ticket, since, concurrency, pace, row } = given;
  const slotMs = slotMsOf(row, pace, concurrency);
  switch (step.is) {
    case 'take':
      return taking(step, given);
    case 'be-head': {
      const { standing, headAt, againAt, lineUntil } = step;
      const head = { head: ticket, headSince: since, headAt, headUntil: againAt + HEAD_SPARE_MS };
      const mine = standingIs(standing, given);
      const full = { condition: 'size(holders) >= :room', values: { ':room': concurrency } };
      const noLater =
        lineUntil === undefined
          ? undefined
          : { condition: 'attribute_not_exists(lineUntil) OR lineUntil <= :lineUntil', values: {} };
      return { change: { set: { ...head, lineUntil } }, condition: allOf(full, mine, noLater) };
    }
    case 'begin-line':
      return {
        change: { set: { lineUntil: step.slotAt + slotMs } },
        condition: {
          condition: 'attribute_not_exists(lineUntil) OR lineUntil <= :slotAt',
          values: { ':slotAt': step.slotAt },
        },
      };
    case 'join-line':
      return { change: joining(slotMs), condition: hasShortLine(now, PLACE_LINE_MS) };
  }
}

function taking(
  { token, standing, room, holders }: Extract<PlaceStep, { readonly is: 'take' }>,
  given: PlaceAsking,
): BucketWrite {
  const { pace, now, patienceMs, holder, since } = given;
  const isTimed = token !== 'no-rate' && pace !== undefined;
  const timed = isTimed ? takingToken(token, pace, now) : { set: {} };
  const place: RowChange =
    holders === undefined
      ? { set: {}, add: { holders: new Set([holder]) } }
      : { set: { holders: new Set([...holders.live, holder]) } };
  const isFree: RowCondition =
    holders === undefined
      ? { condition: 'attribute_not_exists(holders) OR size(holders) < :room', values: { ':room': room } }
      : { condition: 'holders = :asRead', values: { ':asRead': holders.asRead } };
  const isHead = standing === 'head';
  return {
    change: {
      ...timed,
      set: { ...timed.set, ...place.set },
      add: place.add,
      // A place has been free, so the pauses of the next head begin anew.
      remove: isHead ? ['head', 'headSince', 'headAt', 'headUntil'] : ['headAt'],
    },
    condition: allOf(
      isFree,
      isTimed ? hasToken(token, pace, patienceMs, now) : undefined,
      standingIs(standing, given),
      since === undefined && !isHead ? noLine(now) : undefined,
    ),
  };
}

/** The condition under which a message has the standing that was read. That of one behind the head needs none: the place of the head stays free. */
function standingIs(standing: LineStanding, { now, ticket, since }: PlaceAsking): RowCondition | undefined {
  switch (standing) {
    case 'no-head':
      return {
        condition: 'attribute_not_exists(headUntil) OR headUntil <= :now',
        values: { ':now': now },
      };
    case 'head':
      return { condition: 'head = :ticket', values: { ':ticket': ticket } };
    case 'older':
      return { condition: 'headSince > :since', values: { ':since': since } };
    case 'behind':
      return undefined;
  }
}

function answerOf(
  step: Exclude<PlaceStep, { readonly is: 'stay-away' }>,
  { nextAt = 0, lineUntil = 0 }: Partial<LimitRow>,
  { pace, row, concurrency, now }: PlaceAsking,
): Token | NoToken | { readonly is: 'head'; readonly againAt: number } {
  switch (step.is) {
    case 'take':
      return { is: 'token', startsAt: pace === undefined ? now : Math.max(now, nextAt - pace.everyMs) };
    case 'be-head':
      return { is: 'head', againAt: step.againAt };
    default:
      return { is: 'slot', slotAt: Math.ceil(lineUntil - slotMsOf(row, pace, concurrency)) };
  }
}

/** A place that a run holds. */
export interface PlaceHeld {
  readonly key: Key;
  /** Its entry in the bucket. */
  readonly holder: string;
  /** The length of its run, milliseconds, and the estimate that its place came with. @default it did not run */
  readonly ran?: { readonly ms: number; readonly estimateMs: number | undefined } | undefined;
}

/**
 * Frees the place of a run that has ended; others keep theirs. Nothing happens if it has none.
 *
 * @throws the table's error: the place is then free when the run's function has certainly stopped
 */
export async function freePlace(inbox: BucketTable, { key, holder, ran }: PlaceHeld): Promise<void> {
  const set = ran === undefined ? {} : { runMs: estimateOf(ran.ms, ran.estimateMs) };
  const change = { set, subtract: { holders: new Set([holder]) } };
  const mine = { condition: 'contains(holders, :holder)', values: { ':holder': holder } };
  try {
    await writeWithRetry(inbox, { Update: conditionalUpdate(key, change, mine) });
  } catch (error) {
    if (!isMailroomError(error, 'CONDITION_FAILED')) throw error;
  }
}
