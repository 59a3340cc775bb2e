import { isMailroomError, MailroomError } from '../base/errors.ts';
import { isPoison } from '../base/poison.ts';
import type { HandledEvent } from '../events/external-event.ts';
import { LINE_MAX_MS } from '../inbox/limit-bucket.ts';
import { limitWaitOf, limitWaitsWith } from '../inbox/past-attempts.ts';
import { fraction } from '../store/backoff.ts';
import type { PlaceAnswer } from '../store/dynamo/limit-place.ts';
import type { AskedWait, LimitWait } from '../store/inbox-row.ts';
import type { ClaimedMessage } from './consumer-context.ts';
import type { LeasedHandler } from './handler.ts';
import { bucketOf, type MessageBucket } from './limits.ts';
import { noTimeLeft } from './message-outcome.ts';
import { type RunPlace, runPlace } from './run-place.ts';

/** The reason why a message whose handler has a limit does not start. */
export type NotYet =
  /** Its limit has no token or no place: the message waits. `until`: epoch milliseconds */
  | { readonly kind: 'limited'; readonly until: number; readonly wait: AskedWait }
  /** Its handler makes no key of it. */
  | { readonly kind: 'not-started'; readonly error: unknown }
  /** Its lease passed meanwhile, and another worker has the message. */
  | { readonly kind: 'threw'; readonly error: unknown }
  /** The bucket could not be reached or read. */
  | { readonly kind: 'outage'; readonly error: unknown };

/** The turn of a message whose handler may start. `sleptMs`: the time that it has slept until its token, milliseconds. */
export interface ItsTurn {
  readonly kind: 'its-turn';
  readonly sleptMs: number;
  /** {@link RunPlace.leave}. Absent: its limit has no concurrency. */
  readonly leave?: RunPlace['leave'] | undefined;
}

/** The longest time for which a worker waits for a token, milliseconds: SQS hides messages for whole seconds. */
const PATIENCE_MAX_MS = 2_000;

/**
 * The same for a message that has waited for its slot, milliseconds. Longer, so that a predecessor that takes its token some seconds late does
 * not send those behind it to the end of the line.
 */
const SLOT_PATIENCE_MAX_MS = 10_000;

/** The share of a lease that may pass in such a wait. */
const PATIENCE_SHARE = 1 / 4;

/** The time that a handler must have left when it starts, milliseconds. */
const START_MIN_MS = 2_000;

/** A token may start a run this much after its time, milliseconds. After that, it is spent: tokens that all came late would start runs together. */
export const TOKEN_LATE_MS = 2_000;

/** The maximum number of tokens that may be spent so. */
const TOKENS_MAX = 3;

/** The longest key in a row, characters. */
const KEY_MAX_CHARS = 120;

/** The longest wait before a message asks again whose bucket others changed at each try, milliseconds. */
const BUSY_MS = 5_000;

/**
 * Takes a token of the handler's limit, and sleeps until its time. The message is claimed, so a duplicate takes none. A crash from here on wastes
 * the token.
 */
export async function awaitToken(
  claimed: ClaimedMessage,
  handler: LeasedHandler,
  event: HandledEvent,
): Promise<ItsTurn | NotYet> {
  const { limit } = handler;
  const { limits } = claimed.inbox;
  // A limit in a storage without them is refused when the consumer is created.
  if (limit === undefined || limits === undefined) return { kind: 'its-turn', sleptMs: 0 };
  let bucket: MessageBucket;
  try {
    bucket = bucketOf(claimed.config.consumer, handler, limit, event);
  } catch (error) {
    return withoutTurn(error);
  }
  const place = runPlace(claimed, limits, bucket);
  const turn = await turnOf(claimed, bucket, place).catch(withoutTurn);
  if (turn.kind !== 'its-turn') await place.leave?.();
  return turn;
}

function withoutTurn(error: unknown): NotYet {
  if (isMailroomError(error, 'FENCE_LOST')) return { kind: 'threw', error };
  return isPoison(error) ? { kind: 'not-started', error } : { kind: 'outage', error };
}

async function turnOf(
  claimed: ClaimedMessage,
  bucket: MessageBucket,
  { ask, leave }: RunPlace,
): Promise<ItsTurn | NotYet> {
  const { clock, claim, config } = claimed;
  const { slotAt, since } = slotOf(claimed, bucket);
  const leftMs = () => claim.endsBy - START_MIN_MS - clock.now();
  // The last moment is left: what becomes free then comes too late.
  const patienceMs = (longestMs: number) =>
    Math.max(0, Math.min(longestMs, config.leaseMs * PATIENCE_SHARE, leftMs() - START_MIN_MS));
  // It came before its slot, e.g. as a duplicate: it keeps it.
  if (slotAt !== undefined && slotAt > clock.now() + patienceMs(PATIENCE_MAX_MS))
    return waits(claimed, bucket, { at: slotAt, isSlot: true });
  const hasSlot = slotAt !== undefined;
  let sleptMs = 0;
  for (let tokens = 1; tokens <= TOKENS_MAX; tokens += 1) {
    if (leftMs() < 0) return { kind: 'outage', error: noTimeLeft() };
    const asked = { hasSlot, patienceMs: patienceMs(hasSlot ? SLOT_PATIENCE_MAX_MS : PATIENCE_MAX_MS) };
    const answer = await ask(asked, since);
    if (answer.ratesDiffer) warnOnce(claimed, bucket);
    sleptMs += answer.sleptMs ?? 0;
    if (answer.is === 'place') continue;
    if (answer.is !== 'token') return waits(claimed, bucket, untilOf(claimed, answer));
    const waitMs = Math.max(0, answer.startsAt - clock.now());
    if (waitMs > 0) await clock.sleep(waitMs);
    sleptMs += waitMs;
    if (clock.now() - answer.startsAt > TOKEN_LATE_MS) continue;
    if (leftMs() < 0) return { kind: 'outage', error: noTimeLeft() };
    await keepClaim(claimed);
    return { kind: 'its-turn', sleptMs, leave };
  }
  return { kind: 'outage', error: tokensLate() };
}

/** Renews the lease if half of it has passed: the table may have been slow, and no renewal has begun. @throws `FENCE_LOST` */
async function keepClaim({ inbox, claim, clock, config }: ClaimedMessage): Promise<void> {
  if (claim.leaseUntil - clock.now() < config.leaseMs / 2) await inbox.renew(claim);
}

/** The slot that the message has in its row, also one that has passed, and the time since which it waits. Empty: it has none. */
function slotOf({ claim }: ClaimedMessage, { name }: MessageBucket): { slotAt?: number; since?: number } {
  const { limit, since } = limitWaitOf(claim.pastAttempts) ?? {};
  return limit?.name === name && limit.slotAt !== undefined ? { slotAt: limit.slotAt, since } : {};
}

function tokensLate(): MailroomError {
  return new MailroomError(
    'NO_ANSWER',
    `The table answered ${TOKENS_MAX} times more than ${TOKEN_LATE_MS / 1_000} s late when a message took a token of its limit; the tokens are spent.`,
  );
}

interface Until {
  readonly at: number;
  /** It is the message's slot in the line. */
  readonly isSlot: boolean;
}

type NoTurn = Exclude<PlaceAnswer, { readonly is: 'token' | 'place' }>;

/** Without a slot, a message asks again at a random time, so that such messages do not return together. */
function untilOf({ clock, random }: ClaimedMessage, answer: NoTurn): Until {
  if (answer.is === 'slot') return { at: answer.slotAt, isSlot: true };
  if (answer.is === 'head') return { at: answer.againAt, isSlot: true };
  const longestMs = answer.is === 'busy' ? BUSY_MS : LINE_MAX_MS;
  return { at: clock.now() + longestMs * (1 - fraction(random) / 2), isSlot: false };
}

/** Without a new slot, the message keeps the one that it had: newcomers do not take the tokens that are free before it. */
function waits(claimed: ClaimedMessage, bucket: MessageBucket, { at, isSlot }: Until): NotYet {
  const { clock, claim } = claimed;
  const { name, key } = bucket;
  const slotAt = isSlot ? at : slotOf(claimed, bucket).slotAt;
  const shown = [...key].slice(0, KEY_MAX_CHARS).join('');
  const limit: LimitWait = { name, key: shown, ...(slotAt !== undefined && { slotAt }) };
  return { kind: 'limited', until: at, wait: limitWaitsWith(claim.pastAttempts, limit, clock.now()) };
}

const WARNED = new WeakSet<object>();

/** After a deployment with other numbers, or because two functions give one name different ones. */
function warnOnce({ telemetry }: ClaimedMessage, { name, limit }: MessageBucket): void {
  if (WARNED.has(limit)) return;
  WARNED.add(limit);
  const { perSecond, burst = 1, concurrency } = limit;
  telemetry.log.warn(
    'Another worker uses this limit with another perSecond, burst or concurrency: normal during a deployment, otherwise give all handlers of the name the same',
    { limit: name, perSecond, burst, concurrency },
  );
}
