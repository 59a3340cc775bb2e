import { isMailroomError, MailroomError } from '../../base/errors.ts';
import {
  type BucketStep,
  isBucket,
  LINE_MAX_MS,
  stepAt,
  type TokenAsked,
  type TokenRate,
} from '../../inbox/limit-bucket.ts';
import type { LimitRow } from '../inbox-row.ts';
import { writeWithRetry } from '../retry.ts';
import { expiresAt } from '../row-expiry.ts';
import { asRow, isKnownSchema, SCHEMA } from '../row-schema.ts';
import { conditionalUpdate, type RowCondition } from '../row-update.ts';
import type { Item, Key } from '../table.ts';
import type { InboxAccess } from './inbox-context.ts';

/** The bucket of a message. */
export interface BucketOf {
  readonly key: Key;
  readonly pace: TokenRate;
}

/** The answer of a bucket. */
export type TokenAnswer = (Token | NoToken) & {
  /** The bucket was written with another rate than this one. */
  readonly ratesDiffer: boolean;
};

/** A token. `startsAt`: the time from which it may be used, epoch milliseconds. */
interface Token {
  readonly is: 'token';
  readonly startsAt: number;
}

/** No token. `slot`: the message is in the line, and may run at this time; `busy`: others changed the bucket at each try; `line-full`: for hours. */
export type NoToken =
  | { readonly is: 'slot'; readonly slotAt: number }
  | { readonly is: 'busy' | 'line-full' };

/** The maximum number of writes of one answer: a bucket that others change each time has no token to spare. */
const TRIES = 6;

/** TTL may delete a bucket a day after it is full and its line is over: a full bucket needs no row. */
const BUCKET_SPARE_DAYS = 1;

/**
 * Takes a token, or a slot in the line, in one conditional write; a refused write returns the bucket, from which the next one is decided.
 *
 * @throws `UNREADABLE_ROW` if the bucket has a newer schema or no usable times; the table's error
 */
export async function takeToken(
  inbox: Pick<InboxAccess, 'table' | 'clock' | 'random'>,
  { key, pace }: BucketOf,
  asked: TokenAsked,
): Promise<TokenAnswer> {
  let bucket: Partial<LimitRow> = {};
  let ratesDiffer = false;
  for (let tries = 1; tries <= TRIES; tries += 1) {
    const now = inbox.clock.now();
    const step = stepAt(bucket, pace, asked, now);
    if (step === 'stay-away') return { is: 'line-full', ratesDiffer };
    const { ok, item } = await write(inbox, key, step, { pace, asked, now });
    bucket = usable(key, item);
    if (ok) return { ...answerOf(step, bucket, pace, now), ratesDiffer };
    ratesDiffer ||= differs(bucket, pace);
  }
  return { is: 'busy', ratesDiffer };
}

interface Given {
  readonly pace: TokenRate;
  readonly asked: TokenAsked;
  readonly now: number;
}

async function write(
  inbox: Pick<InboxAccess, 'table' | 'clock' | 'random'>,
  key: Key,
  step: BucketStep,
  given: Given,
): Promise<{ readonly ok: boolean; readonly item: Item | undefined }> {
  const { pace, now } = given;
  const { everyMs, burstMs } = pace;
  const { set, computed, values } = CHANGES[step](pace, now);
  const lives = expiresAt(now + LINE_MAX_MS + burstMs + everyMs, BUCKET_SPARE_DAYS);
  const change = { set: { schema: SCHEMA, everyMs, burstMs, ...set, expiresAt: lives }, computed, values };
  try {
    const Update = conditionalUpdate(key, change, conditionOf(step, given));
    return { ok: true, item: await writeWithRetry(inbox, { Update }) };
  } catch (error) {
    if (isMailroomError(error, 'CONDITION_FAILED')) return { ok: false, item: error.item };
    throw error;
  }
}

type BucketChange = {
  readonly set?: Item;
  readonly computed?: Record<string, string>;
  readonly values?: Item;
};

/** The change of each step: no step sets a time back, by the condition that goes with it. */
const CHANGES: Readonly<Record<BucketStep, (pace: TokenRate, now: number) => BucketChange>> = {
  'take-from-full': ({ everyMs, burstMs }, now) => ({ set: { nextAt: now - burstMs + everyMs } }),
  take: ({ everyMs }) => ({ computed: { nextAt: 'nextAt + :step' }, values: { ':step': everyMs } }),
  'begin-line': ({ everyMs }) => ({
    computed: { lineUntil: 'nextAt + :step' },
    values: { ':step': everyMs },
  }),
  'join-line': ({ everyMs }) => ({
    computed: { lineUntil: 'lineUntil + :step' },
    values: { ':step': everyMs },
  }),
  'stay-away': () => ({}),
};

/** The condition of each step. */
function conditionOf(step: BucketStep, { pace, asked, now }: Given): RowCondition {
  const noLine = '(attribute_not_exists(lineUntil) OR lineUntil <= :now)';
  const full = { ':full': now - pace.burstMs };
  const latest = { ':latest': now + asked.patienceMs };
  switch (step) {
    case 'take-from-full': {
      const isFull = 'attribute_not_exists(nextAt) OR nextAt < :full';
      return asked.hasSlot
        ? { condition: isFull, values: full }
        : { condition: `(${isFull}) AND ${noLine}`, values: { ...full, ':now': now } };
    }
    case 'take': {
      const hasToken = 'nextAt >= :full AND nextAt <= :latest';
      return asked.hasSlot
        ? { condition: hasToken, values: { ...full, ...latest } }
        : { condition: `${hasToken} AND ${noLine}`, values: { ...full, ...latest, ':now': now } };
    }
    case 'begin-line':
      return { condition: `nextAt > :latest AND ${noLine}`, values: { ':now': now, ...latest } };
    default:
      return {
        condition: 'lineUntil > :now AND lineUntil <= :longest',
        values: { ':now': now, ':longest': now + LINE_MAX_MS },
      };
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

/** The rate that another worker wrote: after a deployment, or by a limit of the same name with another rate. */
function differs({ everyMs, burstMs }: Partial<LimitRow>, pace: TokenRate): boolean {
  return everyMs !== undefined && (everyMs !== pace.everyMs || burstMs !== pace.burstMs);
}

function usable({ PK }: Key, item: Item | undefined): Partial<LimitRow> {
  if (item === undefined) return {};
  const row = asRow<LimitRow>(item);
  if (isKnownSchema(row.schema) && isBucket(row)) return row;
  throw new MailroomError(
    'UNREADABLE_ROW',
    `The bucket ${PK} of a limit cannot be read: it needs a schema of at most ${SCHEMA}, and numbers \`nextAt\` and \`lineUntil\`. ` +
      'Deploy the version that wrote it, or correct the attribute if it was changed by hand.',
  );
}
