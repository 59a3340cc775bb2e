import { isMailroomError, MailroomError } from '../../base/errors.ts';
import {
  type BucketStep,
  isBucket,
  LINE_MAX_MS,
  stepAt,
  type TokenAsked,
  type TokenRate,
  type TokenStep,
} from '../../inbox/limit-bucket.ts';
import { arePlaces } from '../../inbox/limit-places.ts';
import type { LimitRow } from '../inbox-row.ts';
import { writeWithRetry } from '../retry.ts';
import { expiresAt } from '../row-expiry.ts';
import { asRow, isKnownSchema, SCHEMA } from '../row-schema.ts';
import { conditionalUpdate, type RowChange, type RowCondition } from '../row-update.ts';
import type { Item, Key } from '../table.ts';
import type { InboxAccess } from './inbox-context.ts';

/** The bucket of a message whose limit has a rate. */
export interface BucketOf {
  readonly key: Key;
  readonly pace: TokenRate;
  /** The number of its places: the message has one. Absent: the limit has none. */
  readonly concurrency?: number | undefined;
}

/** The answer of a bucket. */
export type TokenAnswer = (Token | NoToken) & {
  /** The bucket was written with other numbers than these. */
  readonly ratesDiffer: boolean;
};

/** A token. `startsAt`: the time from which it may be used, epoch milliseconds. */
export interface Token {
  readonly is: 'token';
  readonly startsAt: number;
}

/** No token. `slot`: the message is in the line, and may run at this time; `busy`: others changed the bucket at each try; `line-full`: for hours. */
export type NoToken =
  | { readonly is: 'slot'; readonly slotAt: number }
  | { readonly is: 'busy' | 'line-full' };

/** The maximum number of writes of one answer: a bucket that others change each time has no token to spare. */
export const BUCKET_TRIES = 6;

/** TTL may delete a bucket a day after it is full and its line is over: a full bucket needs no row. */
const BUCKET_SPARE_DAYS = 1;

/** The parts that a bucket needs. */
export type BucketTable = Pick<InboxAccess, 'table' | 'clock' | 'random'>;

/**
 * Takes a token, or a slot in the line, in one conditional write; a refused write returns the bucket, from which the next one is decided.
 *
 * @throws `UNREADABLE_ROW` if the bucket has a newer schema or no usable times; the table's error
 */
export async function takeToken(
  inbox: BucketTable,
  { key, pace, concurrency }: BucketOf,
  asked: TokenAsked,
): Promise<TokenAnswer> {
  const numbers = { ...pace, concurrency };
  let bucket: Partial<LimitRow> = {};
  let ratesDiffer = false;
  for (let tries = 1; tries <= BUCKET_TRIES; tries += 1) {
    const now = inbox.clock.now();
    const step = stepAt(bucket, pace, asked, now);
    if (step === 'stay-away') return { is: 'line-full', ratesDiffer };
    const change = withNumbers(CHANGES[step](pace, now), numbers, now);
    const { ok, item } = await writeBucket(inbox, key, change, conditionOf(step, { pace, asked, now }));
    bucket = item;
    if (ok) return { ...answerOf(step, bucket, pace, now), ratesDiffer };
    ratesDiffer ||= differs(bucket, numbers);
  }
  return { is: 'busy', ratesDiffer };
}

/** The numbers of a limit, which each write of its bucket stores. */
export interface LimitNumbers extends Partial<TokenRate> {
  readonly concurrency?: number | undefined;
}

/** Adds to a change the numbers of its limit, and the time from which TTL may delete the bucket. */
export function withNumbers(change: RowChange, numbers: LimitNumbers, now: number): RowChange {
  const { everyMs, burstMs, concurrency } = numbers;
  const given = { everyMs, burstMs, concurrency };
  const absent = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [name] : []));
  const expiry = expiresAt(now + LINE_MAX_MS + (burstMs ?? 0) + (everyMs ?? 0), BUCKET_SPARE_DAYS);
  return {
    ...change,
    set: { ...given, ...change.set, expiresAt: expiry },
    remove: [...(change.remove ?? []), ...absent],
  };
}

/** Writes a bucket on a condition. @returns the bucket afterwards, or that which refused it */
export async function writeBucket(
  inbox: BucketTable,
  key: Key,
  change: RowChange,
  condition: RowCondition,
): Promise<{ readonly ok: boolean; readonly item: Partial<LimitRow> }> {
  try {
    const Update = conditionalUpdate(key, { ...change, set: { schema: SCHEMA, ...change.set } }, condition);
    return { ok: true, item: usable(key, await writeWithRetry(inbox, { Update })) };
  } catch (error) {
    if (isMailroomError(error, 'CONDITION_FAILED')) return { ok: false, item: usable(key, error.item) };
    throw error;
  }
}

interface Given {
  readonly pace: TokenRate;
  readonly asked: TokenAsked;
  readonly now: number;
}

/** The change of each step: no step sets a time back, by the condition that goes with it. */
const CHANGES: Readonly<Record<BucketStep, (pace: TokenRate, now: number) => RowChange>> = {
  'take-from-full': ({ everyMs, burstMs }, now) => ({ set: { nextAt: now - burstMs + everyMs } }),
  take: ({ everyMs }) => ({ set: {}, computed: { nextAt: 'nextAt + :step' }, values: { ':step': everyMs } }),
  'begin-line': ({ everyMs }) => ({
    set: {},
    computed: { lineUntil: 'nextAt + :step' },
    values: { ':step': everyMs },
  }),
  'join-line': ({ everyMs }) => joining(everyMs),
  'stay-away': () => ({ set: {} }),
};

/** The change by which a message joins the end of the line. @param slotMs - the time between two slots */
export function joining(slotMs: number): RowChange {
  return { set: {}, computed: { lineUntil: 'lineUntil + :step' }, values: { ':step': slotMs } };
}

/** The change by which a token is taken. */
export function takingToken(step: TokenStep, pace: TokenRate, now: number): RowChange {
  return CHANGES[step](pace, now);
}

/** The condition under which a token is taken. */
export function hasToken(
  step: TokenStep,
  { burstMs }: TokenRate,
  patienceMs: number,
  now: number,
): RowCondition {
  const full = { ':full': now - burstMs };
  return step === 'take-from-full'
    ? { condition: 'attribute_not_exists(nextAt) OR nextAt < :full', values: full }
    : {
        condition: 'nextAt >= :full AND nextAt <= :latest',
        values: { ...full, ':latest': now + patienceMs },
      };
}

/** The condition under which no message waits. */
export function noLine(now: number): RowCondition {
  return { condition: 'attribute_not_exists(lineUntil) OR lineUntil <= :now', values: { ':now': now } };
}

/** All of these conditions. DynamoDB refuses redundant parentheses. */
export function allOf(...conditions: readonly (RowCondition | undefined)[]): RowCondition {
  const given = conditions.filter((one) => one !== undefined);
  const inner = ({ condition }: RowCondition) =>
    given.length > 1 && condition.includes(' OR ') ? `(${condition})` : condition;
  return {
    condition: given.map(inner).join(' AND '),
    values: Object.assign({}, ...given.map(({ values }) => values)),
  };
}

/** The condition of a message that joins the end of the line. */
export function hasShortLine(now: number, longestMs = LINE_MAX_MS): RowCondition {
  const values = { ':now': now, ':longest': now + longestMs };
  return { condition: 'lineUntil > :now AND lineUntil <= :longest', values };
}

/** The condition of each step. */
function conditionOf(step: BucketStep, { pace, asked, now }: Given): RowCondition {
  const { hasSlot, patienceMs } = asked;
  switch (step) {
    case 'take-from-full':
    case 'take':
      return allOf(hasToken(step, pace, patienceMs, now), hasSlot ? undefined : noLine(now));
    case 'begin-line':
      return allOf({ condition: 'nextAt > :latest', values: { ':latest': now + patienceMs } }, noLine(now));
    default:
      return hasShortLine(now);
  }
}

function answerOf(
  step: BucketStep,
  { nextAt = 0, lineUntil = 0 }: Partial<LimitRow>,
  { everyMs }: TokenRate,
  now: number,
): Token | NoToken {
  return step === 'take' || step === 'take-from-full'
    ? { is: 'token', startsAt: Math.max(now, nextAt - everyMs) }
    : { is: 'slot', slotAt: Math.ceil(lineUntil - everyMs) };
}

/** Another worker wrote other numbers: before a deployment, or by a limit of the same name. */
export function differs(row: Partial<LimitRow>, numbers: LimitNumbers): boolean {
  const names = ['everyMs', 'burstMs', 'concurrency'] as const;
  return row.schema !== undefined && names.some((name) => row[name] !== numbers[name]);
}

function usable({ PK }: Key, item: Item | undefined): Partial<LimitRow> {
  if (item === undefined) return {};
  const row = asRow<LimitRow>(item);
  if (isKnownSchema(row.schema) && isBucket(row) && arePlaces({ ...row })) return row;
  throw new MailroomError(
    'UNREADABLE_ROW',
    `The bucket ${PK} of a limit cannot be read: it needs a schema of at most ${SCHEMA}, numbers \`nextAt\` and \`lineUntil\`, and a set of texts \`holders\`. ` +
      'Deploy the version that wrote it, or correct the attribute if it was changed by hand.',
  );
}
