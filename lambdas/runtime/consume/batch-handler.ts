import type { ProcessingConfig } from '../base/consumer-config.ts';
import { MailroomError } from '../base/errors.ts';
import type { EventOf, HandledDefinition, HandledEvent } from '../events/external-event.ts';
import type { Telemetry } from '../observe/telemetry.ts';
import type { Commit } from '../store/dynamo/outbox.ts';
import { runInside } from './around.ts';
import { type BatchCommit, causedBy } from './batch-commit.ts';
import { commitOf } from './commit-of.ts';
import type { BatchContext, Handler, HandlerOptions, TransactionalHandler } from './handler.ts';
import { orderOfHandler } from './order-gate.ts';

/** A handler created by {@link transactionalBatch}. */
export type BatchHandler = TransactionalHandler & Required<Pick<TransactionalHandler, 'handleBatch'>>;

/**
 * Creates a {@link transactional} handler that takes several events at a time, up to the 10 messages of an SQS batch: one transaction performs the
 * writes, writes the events and sets all of their messages PROCESSED. It only reads and returns, and may run several times, also with fewer of the
 * events, but each event's writes happen once: every message keeps its own row.
 *
 * It receives the events in the order of their ids, each event once. If it throws, or its transaction is refused or too large, it runs again with
 * each half of them, down to one. A message that was received before, or that has a row, runs alone. So the writes must not depend on which events
 * come together: add amounts to a row rather than storing one row per batch.
 *
 * Only with an inbox in DynamoDB and messages from SQS, and without an order or a limit: see docs/batches.md.
 *
 * @throws `BAD_CONSUMER` if `handle` is not a function
 *
 * @example
 * ```ts
 * transactionalBatch(OrderPlaced, async (events) => ({
 *   writes: [{ Update: { Key, UpdateExpression: 'ADD orders :n', ExpressionAttributeValues: { ':n': events.length } } }],
 * }));
 * ```
 */
export function transactionalBatch<E extends HandledDefinition>(
  definition: E,
  handle: (events: readonly EventOf<E>[], ctx: BatchContext) => Promise<BatchCommit>,
  { rejected, ...more }: Pick<HandlerOptions<E>, 'rejected' | 'expiresInMs'> = {},
): Handler {
  if (typeof handle !== 'function')
    throw new MailroomError(
      'BAD_CONSUMER',
      `transactionalBatch received a handler of type ${typeof handle} for ${definition.type}; it must be a function of a list of events.`,
    );
  const handler: BatchHandler = {
    kind: 'transactional',
    definition,
    handle: async (event: never, ctx) => {
      const { writes, events } = await batchCommitOf(handler, [event], ctx);
      return { writes, events: events.map(({ draft }) => draft) } satisfies Commit;
    },
    handleBatch: handle as BatchHandler['handleBatch'],
    rejected,
    ...more, // an order or a limit is refused when the consumer is created
  };
  return handler;
}

/**
 * Runs a batch handler.
 *
 * @throws its error; `NO_COMMIT` if it returned something else than a commit
 */
export async function batchCommitOf(
  { definition, handleBatch, around }: BatchHandler,
  events: readonly HandledEvent[],
  ctx: BatchContext,
  telemetry?: Telemetry,
) {
  const what = `The handler of ${definition.type}`;
  const handle = async () =>
    causedBy(what, await commitOf(what, () => handleBatch(events as never, ctx)), events);
  return runInside({ around, events, ctx, handle, telemetry });
}

/** Returns true for a handler that takes several events at a time. */
export function takesBatches(handler: Handler): handler is BatchHandler {
  return handler.kind === 'transactional' && handler.handleBatch !== undefined;
}

/**
 * Refuses batch handlers where they cannot work.
 *
 * @param canBatch - false if the consumer's storage or its source cannot
 * @throws `BAD_CONSUMER`
 */
export function checkBatches(
  handlers: readonly Handler[],
  config: ProcessingConfig,
  canBatch: boolean,
): void {
  for (const handler of handlers.filter(takesBatches)) {
    const problem = canBatch
      ? orderOfHandler(handler, config) &&
        'transactionalBatch cannot be combined with an order: the messages of a batch are not applied one after another. Create it with transactional(…), or remove the order.'
      : 'transactionalBatch needs a consumer whose inbox is in DynamoDB and whose messages come from SQS. Create it with transactional(…).';
    if (problem === undefined) continue;
    throw new MailroomError('BAD_CONSUMER', `The handler of ${handler.definition.type}: ${problem}`);
  }
}
