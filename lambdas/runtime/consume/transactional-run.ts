import { isMailroomError } from '../base/errors.ts';
import type { HandledEvent } from '../events/external-event.ts';
import { backoffMs } from '../store/backoff.ts';
import { Overtaken } from '../store/last-sequence.ts';
import { runInside } from './around.ts';
import { commitOf } from './commit-of.ts';
import type { ConsumerContext, Received } from './consumer-context.ts';
import type { LeasedHandler, TransactionalContext, TransactionalHandler } from './handler.ts';
import { inTimeOf } from './in-time.ts';
import type { HandlerWork } from './inbox-port.ts';
import { freshEvent } from './message.ts';
import { failUnclaimed, report, reportOutage } from './message-outcome.ts';
import type { ClaimEnd } from './run-ending.ts';

/** The maximum number of consecutive runs of a transactional handler whose conditions fail. */
const CONDITION_TRIES = 4;

/** With less time than this left, the handler is not run again immediately, milliseconds. */
const TRY_MIN_MS = 2_000;

/**
 * Runs a transactional handler without a claim. The handler only reads and returns; its writes and the inbox row are one
 * transaction, on the condition that the row does not exist.
 *
 * @returns `undefined` if the row exists, and the message has to be claimed
 * @throws {@link Overtaken} if the message must pass the gate again, the table's error if it cannot be rejected
 */
export async function runUnclaimed(
  received: Received,
  handler: TransactionalHandler,
  envelope: HandledEvent,
): Promise<ClaimEnd | undefined> {
  const { delivery, span, logFields } = received;
  const { receives, endsBy } = delivery;
  const remainingMs = () => Math.max(0, endsBy - received.clock.now());
  try {
    const given = { attempt: receives, remainingMs, logFields };
    return await onFreshReads(received, remainingMs, async () => {
      const event = await freshEvent(handler.definition, envelope);
      return span.run(() => commit(received, event, workOf(received, handler, event, given)));
    });
  } catch (error) {
    if (error instanceof Overtaken) throw error;
    if (isMailroomError(error, 'ALREADY_PROCESSED')) return commit(received, envelope, async () => ({}));
    return failUnclaimed(received, error);
  }
}

async function commit(
  received: Received,
  event: HandledEvent,
  work: HandlerWork,
): Promise<ClaimEnd | undefined> {
  const { inbox, clock, telemetry, delivery } = received;
  const { message, receives, endsBy } = delivery;
  const inTime = inTimeOf(clock, endsBy); // the batch must be answered
  const end = await inbox.commitUnclaimed(message, receives, work, event, inTime);
  if (end.status === 'open') return undefined;
  if (end.status === 'failed') {
    if (end.isOutage) return reportOutage(received, end.error);
    throw end.error;
  }
  if (end.status !== 'committed') return end;
  telemetry.count('EventsCommitted', end.events);
  return report(received, { is: 'processed' });
}

function workOf(
  { telemetry }: ConsumerContext,
  handler: TransactionalHandler,
  event: HandledEvent,
  given: TransactionalContext,
): HandlerWork {
  const { around } = handler;
  return (tx) => {
    const handle = () =>
      commitOf(`The handler of ${event.type}`, () =>
        handler.handle(event as never, { ...given, tx } as never),
      );
    return runInside({ around, events: [event], ctx: given, handle, telemetry });
  };
}

/**
 * Adapts the handler to run under a claim. A redelivered message runs this way: if it kills its process without a claim, it
 * leaves no trace, no attempt is counted, and it takes its batch along.
 */
export function asLeased(
  ctx: ConsumerContext,
  handler: TransactionalHandler,
  envelope: HandledEvent,
): LeasedHandler {
  return {
    kind: 'leased',
    definition: handler.definition,
    expiresInMs: handler.expiresInMs,
    handle: async (_event: HandledEvent, given) => {
      await onFreshReads(ctx, given.remainingMs, async () => {
        const event = await freshEvent(handler.definition, envelope);
        await given.commit(workOf(ctx, handler, event, given) as never);
      });
    },
  };
}

/**
 * Runs a handler and commits its result; if only conditions or conflicts refused the transaction, runs it again on fresh reads.
 *
 * @param isConflict - true for an error after which it runs again @default refused conditions, perhaps with conflicts
 * @throws the error of the last try
 */
export async function onFreshReads<T>(
  { clock, random, inbox }: Pick<ConsumerContext, 'clock' | 'random' | 'inbox'>,
  remainingMs: () => number,
  work: () => Promise<T>,
  isConflict = inbox.isConflict,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      const again = isConflict(error) && attempt < CONDITION_TRIES && remainingMs() > TRY_MIN_MS;
      if (!again) throw error;
      await clock.sleep(backoffMs(attempt, 20, 500, random));
    }
  }
}
