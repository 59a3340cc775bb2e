import { isMailroomError, MailroomError } from '../base/errors.ts';
import { isPoison } from '../base/poison.ts';
import type { HandledEvent } from '../events/external-event.ts';
import { LINE_MAX_MS } from '../inbox/limit-bucket.ts';
import { limitWaitOf, limitWaitsWith } from '../inbox/past-attempts.ts';
import { fraction } from '../store/backoff.ts';
import type { NoToken } from '../store/dynamo/limit-bucket.ts';
import type { AskedWait, LimitWait } from '../store/inbox-row.ts';
import type { ClaimedMessage } from './consumer-context.ts';
import type { LeasedHandler } from './handler.ts';
import { bucketOf, type MessageBucket } from './limits.ts';
import { noTimeLeft } from './message-outcome.ts';

/** The reason why a message whose handler has a limit does not start. */
export type NotYet =
  /** Its limit has no token: the message waits. `until`: epoch milliseconds */
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
  if (limit === undefined) return itsTurn(0);
  try {
    return await tokenFor(claimed, bucketOf(claimed.config.consumer, handler, limit, event));
  } catch (error) {
    if (isMailroomError(error, 'FENCE_LOST')) return { kind: 'threw', error };
    return isPoison(error) ? { kind: 'not-started', error } : { kind: 'outage', error };
  }
}

function itsTurn(sleptMs: number): ItsTurn {
  return { kind: 'its-turn', sleptMs };
}

async function tokenFor(claimed: ClaimedMessage, bucket: MessageBucket): Promise<ItsTurn | NotYet> {
  const { inbox, clock, claim, config } = claimed;
  const slotAt = slotOf(claimed, bucket);
  const leftMs = () => claim.endsBy - START_MIN_MS - clock.now();
  const patienceMs = (longestMs: number) => Math.min(longestMs, config.leaseMs * PATIENCE_SHARE, leftMs());
  // It came before its slot, e.g. as a duplicate: it keeps it.
  if (slotAt !== undefined && slotAt > clock.now() + Math.max(0, patienceMs(PATIENCE_MAX_MS)))
    return waits(claimed, bucket, { at: slotAt, isSlot: true });
  const hasSlot = slotAt !== undefined;
  let sleptMs = 0;
  for (let tokens = 1; tokens <= TOKENS_MAX; tokens += 1) {
    if (leftMs() < 0) return { kind: 'outage', error: noTimeLeft() };
    const asked = { hasSlot, patienceMs: patienceMs(hasSlot ? SLOT_PATIENCE_MAX_MS : PATIENCE_MAX_MS) };
    const answer = await inbox.takeToken?.({ key: bucket.row, pace: bucket.pace }, asked);
    if (answer === undefined) return itsTurn(sleptMs); // refused when the consumer is created
    if (answer.ratesDiffer) warnOnce(claimed, bucket);
    if (answer.is !== 'token') return waits(claimed, bucket, untilOf(claimed, answer));
    const waitMs = Math.max(0, answer.startsAt - clock.now());
    if (waitMs > 0) await clock.sleep(waitMs);
    sleptMs += waitMs;
    if (clock.now() - answer.startsAt > TOKEN_LATE_MS) continue;
    if (leftMs() < 0) return { kind: 'outage', error: noTimeLeft() };
    await keepClaim(claimed);
    return itsTurn(sleptMs);
  }
  return { kind: 'outage', error: tokensLate() };
}

/** Renews the lease if half of it has passed: the table may have been slow, and no renewal has begun. @throws `FENCE_LOST` */
async function keepClaim({ inbox, claim, clock, config }: ClaimedMessage): Promise<void> {
  if (claim.leaseUntil - clock.now() < config.leaseMs / 2) await inbox.renew(claim);
}

/** The slot that the message has in its row: also one that has passed. */
function slotOf({ claim }: ClaimedMessage, { name }: MessageBucket): number | undefined {
  const wait = limitWaitOf(claim.pastAttempts)?.limit;
  return wait?.name === name ? wait.slotAt : undefined;
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

/** Without a slot, a message asks again at a random time, so that such messages do not return together. */
function untilOf({ clock, random }: ClaimedMessage, answer: NoToken): Until {
  if (answer.is === 'slot') return { at: answer.slotAt, isSlot: true };
  const longestMs = answer.is === 'busy' ? BUSY_MS : LINE_MAX_MS;
  return { at: clock.now() + longestMs * (1 - fraction(random) / 2), isSlot: false };
}

/** Without a new slot, the message keeps the one that it had: newcomers do not take the tokens that are free before it. */
function waits(claimed: ClaimedMessage, bucket: MessageBucket, { at, isSlot }: Until): NotYet {
  const { clock, claim } = claimed;
  const { name, key } = bucket;
  const slotAt = isSlot ? at : slotOf(claimed, bucket);
  const shown = [...key].slice(0, KEY_MAX_CHARS).join('');
  const limit: LimitWait = { name, key: shown, ...(slotAt !== undefined && { slotAt }) };
  return { kind: 'limited', until: at, wait: limitWaitsWith(claim.pastAttempts, limit, clock.now()) };
}

const WARNED = new WeakSet<object>();

/** After a deployment with another rate, or because two functions give one name two rates. */
function warnOnce({ telemetry }: ClaimedMessage, { name, limit }: MessageBucket): void {
  if (WARNED.has(limit)) return;
  WARNED.add(limit);
  const { perSecond, burst = 1 } = limit;
  telemetry.log.warn(
    'Another worker takes tokens of this limit with another perSecond or burst: normal during a deployment, otherwise give all handlers of the name the same',
    { limit: name, perSecond, burst },
  );
}
