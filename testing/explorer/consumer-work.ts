import type { SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import { errorCode, errorMessage, isMailroomError } from '../../lambdas/runtime/base/errors.ts';
import { UNSTABLE_EFFECTS } from '../../lambdas/runtime/consume/claimed-effects.ts';
import type { Handler } from '../../lambdas/runtime/consume/handler.ts';
import { readDelivered } from '../../lambdas/runtime/consume/message.ts';
import { type ExternalSubscription, isExternal } from '../../lambdas/runtime/events/external-event.ts';
import type { Telemetry } from '../../lambdas/runtime/observe/telemetry.ts';
import { createConsumer } from '../../lambdas/runtime/sources/sqs/consumer.ts';
import { inboxKey } from '../../lambdas/runtime/store/keys.ts';
import { lambdaContext } from '../lambda-context.ts';
import { memoryTelemetry } from '../memory-telemetry.ts';
import type { Actor } from './actor.ts';
import { type ConsumerParts, violate } from './consumer-parts.ts';
import { tableOf } from './consumer-table.ts';
import { type ObservedDeps, observed } from './observed-handler.ts';
import { scheduledQueue } from './ports.ts';

/** The maximum run time of the consumer's function, in milliseconds. */
const FUNCTION_TIMEOUT_MS = 45_000;

/** Receives and handles messages until the queue is empty. @param invocationsMax - the maximum number of invocations */
export async function work(parts: ConsumerParts, actor: Actor, invocationsMax: number): Promise<void> {
  const { queue } = parts;
  for (let invocations = 0; invocations < invocationsMax; invocations += 1) {
    const records = await nextMessages(parts, actor);
    if (records.length === 0) return;
    const end = await actor.invoke(FUNCTION_TIMEOUT_MS, () => invocation(parts, actor, records));
    if (end.kind === 'threw') violate(parts, `The consumer threw: ${String(end.error)}`);
    if (end.kind !== 'returned') continue;
    const failed = new Set(end.value.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier));
    for (const record of records) {
      const { messageId, receiptHandle } = record;
      if (failed.has(messageId)) continue;
      const deletion = () => {
        if (isOfNewerVersion(parts, actor, record))
          violate(parts, 'A message of a newer version was acknowledged');
        queue.delete(receiptHandle);
      };
      await actor.step('delete the message', deletion, {
        local: !queue.isSharedAtOnce(receiptHandle),
        lost: 'the message is not deleted',
      });
    }
  }
}

/** Returns true if the row of a message has a newer schema than the worker's: even a final status may then mean something else. */
function isOfNewerVersion(
  { options, config, memory }: ConsumerParts,
  actor: Actor,
  record: SQSRecord,
): boolean {
  if (options.schemaOf === undefined) return false;
  const row = memory.item(inboxKey(config.consumer, eventIdOf(record, [])));
  return Number(row?.schema) > options.schemaOf(actor);
}

async function nextMessages(
  { scheduler, queue, options }: ConsumerParts,
  actor: Actor,
): Promise<SQSRecord[]> {
  for (;;) {
    const records = await actor.step('receive', () => queue.receive(options.batchSize ?? 1));
    const shown = queue.messages().map(({ visibleAt }) => visibleAt);
    if (records.length > 0 || shown.length === 0) return records;
    await actor.clock.sleep(Math.max(1, Math.min(...shown) - scheduler.now()));
  }
}

/** Sends a request to the consumer's function as the `mailroom` command does. @returns its answer, if it was received */
export async function ask(parts: ConsumerParts, actor: Actor, request: unknown): Promise<unknown> {
  const end = await actor.invoke(FUNCTION_TIMEOUT_MS, () => invoke(parts, actor, request, []));
  return end.kind === 'returned' ? end.value : undefined;
}

function invocation(parts: ConsumerParts, actor: Actor, records: SQSRecord[]): Promise<SQSBatchResponse> {
  return invoke(parts, actor, { Records: records }, records);
}

/** One invocation of the consumer's function, in its own process. */
function invoke(
  parts: ConsumerParts,
  actor: Actor,
  event: unknown,
  records: readonly SQSRecord[],
): Promise<SQSBatchResponse> {
  const { scheduler, options, config, memory, log } = parts;
  const report = (what: string) => violate(parts, what);
  const table = tableOf(parts, actor);
  const queue = scheduledQueue(actor, parts.queue);
  const made = [options.handler({ table }, actor)].flat();
  const subscriptions = made.map(({ definition }) => definition).filter(isExternal);
  const deps: ObservedDeps = {
    actor,
    memory,
    consumer: config.consumer,
    messageIds: new Map(records.map((record) => [eventIdOf(record, subscriptions), record.messageId])),
    log,
    violate: report,
  };
  const { tamperHandler = (handler: Handler) => handler } = options;
  // What takes a rule away stands between the code and the handler.
  const handlers = made.map((handler) => tamperHandler(observed(handler, deps), actor));
  const { makeConsumer = createConsumer } = options;
  const consume = makeConsumer({
    config,
    table,
    queue: options.tamperQueue?.(queue) ?? queue,
    handlers,
    clock: actor.clock,
    random: actor.random,
    telemetry: watchedTelemetry(report),
  });
  const clock = { now: () => scheduler.now(), sleep: async () => {} };
  const answer = options.tamperConsumer?.(consume, actor) ?? consume;
  return answer(event as SQSEvent, lambdaContext({ clock, timeoutMs: FUNCTION_TIMEOUT_MS }));
}

/** The event in a message of this world, by the identity that the consumer gives it. */
function eventIdOf(record: SQSRecord, subscriptions: readonly ExternalSubscription[]): string {
  return readDelivered(record.body, { subscriptions, arrivedAt: 0 }).envelope.eventId;
}

/** Telemetry that treats a report of unstable effects, or of a call after the commit, as a violation. */
function watchedTelemetry(violate: (what: string) => void): Telemetry {
  const memory = memoryTelemetry();
  return {
    ...memory,
    log: {
      ...memory.log,
      error: (_message, ...[extra]) => {
        const error = (extra as { readonly error?: unknown } | undefined)?.error;
        if (isMailroomError(error, 'AFTER_COMMIT') || errorCode(error) === UNSTABLE_EFFECTS)
          violate(errorMessage(error));
      },
    },
  };
}
