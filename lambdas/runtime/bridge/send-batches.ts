import { type Clock, nextTurn, withDeadline } from '../base/clock.ts';
import { errorCode, errorMessage } from '../base/errors.ts';
import {
  type BridgedEvent,
  type BridgeResult,
  type BridgeTarget,
  entryBytes,
  isPermanent,
  refused,
} from './bridge-target.ts';

/** An entry whose message waits for its result. */
interface Waiting {
  readonly entry: BridgedEvent;
  /** Aborted when the worker has lost the message, or its time is up: it must not be sent then. */
  readonly signal: AbortSignal;
  readonly settle: (result: Promise<BridgeResult>) => void;
}

/** Sends one entry, together with others. */
export type SendEntry = (entry: BridgedEvent, signal: AbortSignal) => Promise<BridgeResult>;

/**
 * Gathers the entries of a function's concurrent messages into calls of the target: while one call runs, the next batch gathers.
 *
 * @param timeoutMs - the time after which a call counts as failed, milliseconds
 */
export function batchSender(target: BridgeTarget, clock: Clock, timeoutMs: number): SendEntry {
  const waiting: Waiting[] = [];
  let sending = false;
  const sendAll = async () => {
    while (waiting.length > 0) {
      await nextTurn(); // the other messages of the invocation
      const batch = nextBatch(waiting, target.limits);
      // One of several entries can be the reason why others are refused permanently.
      for (const one of await sendBatch(target, batch, clock, timeoutMs)) {
        if (isLost(one)) continue;
        await sendBatch(target, [one], clock, timeoutMs);
      }
    }
    sending = false;
  };
  return (entry, signal) =>
    new Promise((settle) => {
      waiting.push({ entry, signal, settle });
      if (sending) return;
      sending = true;
      void sendAll();
    });
}

/** Takes the entries of the next call from those that wait; at least one that must be sent, if there is one. */
function nextBatch(waiting: Waiting[], limits: BridgeTarget['limits']): Waiting[] {
  const batch: Waiting[] = [];
  let bytes = 0;
  for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
    bytes += entryBytes(next.entry);
    if (batch.length > 0 && (batch.length === limits.entries || bytes > limits.bytes)) break;
    waiting.shift();
    if (!isLost(next)) batch.push(next);
  }
  return batch;
}

/** Ends an entry that must not be sent any more. */
function isLost({ signal, settle }: Waiting): boolean {
  if (signal.aborted) settle(Promise.reject(signal.reason));
  return signal.aborted;
}

/** Sends a batch, and returns those of several entries that are refused permanently, to be sent alone. The others have their results then. */
async function sendBatch(
  target: BridgeTarget,
  batch: readonly Waiting[],
  clock: Clock,
  timeoutMs: number,
): Promise<readonly Waiting[]> {
  if (batch.length === 0) return [];
  const entries = batch.map(({ entry }) => entry);
  const results = await answerOf(target, entries, clock, timeoutMs);
  return batch.filter(({ settle }, i) => {
    const result = results[i] ?? refused('unavailable', 'NO_ANSWER', 'it did not answer for it');
    if (batch.length > 1 && isPermanent(result)) return true;
    settle(Promise.resolve(result));
    return false;
  });
}

async function answerOf(
  target: BridgeTarget,
  entries: readonly BridgedEvent[],
  clock: Clock,
  timeoutMs: number,
): Promise<readonly BridgeResult[]> {
  // What the target has confirmed is not sent again, however the call ends.
  const known = new Map<number, BridgeResult>();
  try {
    const sent = target.send(entries, (index, result) => known.set(index, result));
    return await withDeadline(clock, timeoutMs, sent, () => {
      target.reset?.();
      const late = refused('unavailable', 'TIMEOUT', `it did not answer within ${timeoutMs} ms`);
      return entries.map((_, i) => known.get(i) ?? late);
    });
  } catch (error) {
    const failed = refused('unavailable', errorCode(error), errorMessage(error));
    return entries.map((_, i) => known.get(i) ?? failed);
  }
}
