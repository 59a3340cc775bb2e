import { isMailroomError } from '../../lambdas/runtime/base/errors.ts';
import type { Handler, LeasedContext, TransactionalContext } from '../../lambdas/runtime/consume/handler.ts';
import type { Envelope } from '../../lambdas/runtime/events/event.ts';
import type { InboxRow } from '../../lambdas/runtime/store/inbox-row.ts';
import { inboxKey } from '../../lambdas/runtime/store/keys.ts';
import { asRow, isKnownSchema } from '../../lambdas/runtime/store/row-schema.ts';
import type { MemoryTable } from '../memory-table.ts';
import type { Actor } from './actor.ts';
import { named } from './call-outcomes.ts';

/** Facts that all runs of all handlers share. */
export interface HandlerLog {
  /** The SQS message ids under which the message was rejected, even if its row has changed since. */
  readonly rejectedIds: Set<string>;
  /** The number of runs of each effect, by its idempotency key. */
  readonly happened: Map<string, number>;
  /** The current run of an effect: the actor and the number of its invocation. */
  readonly running: Map<string, { readonly actor: Actor; readonly invocation: number }>;
}

/** Dependencies of an observed handler. */
export interface ObservedDeps {
  readonly actor: Actor;
  readonly memory: MemoryTable;
  readonly consumer: string;
  /** The SQS message id under which the handler runs for each event. */
  readonly messageIds: ReadonlyMap<string, string>;
  readonly log: HandlerLog;
  readonly violate: (what: string) => void;
}

/**
 * Wraps the handler: each of its effects becomes a call that may crash, lose its response or take effect late. Also checks
 * invariants: a rejected message never runs again, and an effect never runs after its result is stored, or twice at once.
 */
export function observed(handler: Handler, deps: ObservedDeps): Handler {
  const { memory, consumer, messageIds, log, violate } = deps;

  function checkStart(event: Envelope): void {
    const item = memory.item(inboxKey(consumer, event.eventId));
    const row = item && asRow<InboxRow>(item);
    if (log.rejectedIds.has(messageIds.get(event.eventId) ?? ''))
      violate('A message that was rejected is run again');
    if (row?.status === 'PROCESSED' && handler.kind === 'leased') violate('A processed message is run again');
  }

  if (handler.kind === 'transactional') {
    const { handleBatch } = handler;
    return {
      ...handler,
      handleBatch:
        handleBatch &&
        (async (events, ctx) => {
          events.forEach(checkStart);
          return handleBatch(events, ctx);
        }),
      handle: async (event: never, ctx: TransactionalContext) => {
        checkStart(event);
        return handler.handle(event, ctx);
      },
    };
  }
  return {
    ...handler,
    handle: async (event: never, ctx: LeasedContext) => {
      checkStart(event);
      return handler.handle(event, {
        ...ctx,
        once: observedOnce(event, ctx, deps),
        onceEach: observedOnceEach(event, ctx, deps),
      });
    },
  };
}

function observedOnce(event: Envelope, ctx: LeasedContext, deps: ObservedDeps): LeasedContext['once'] {
  const { memory, consumer, violate } = deps;
  return (name, effect) => {
    let done = false;
    const result = ctx.once(name, async (idempotencyKey, signal) => {
      const value = await observedEffect(event, deps, idempotencyKey, () => effect(idempotencyKey, signal));
      done = true;
      return value;
    });
    // The native `then`: the runtime's own would take this for the handler that awaits its call.
    void Promise.prototype.then.call(result, undefined, (error: unknown) => {
      // A version that has lost the message to a newer one cannot store the result: it does not write that version's row.
      const { schema } = memory.item(inboxKey(consumer, event.eventId)) ?? {};
      if (done && isMailroomError(error, 'FENCE_LOST') && isKnownSchema(schema))
        violate(`The result of the effect "${name}" is refused while its worker runs`);
    });
    return result;
  };
}

function observedOnceEach(
  event: Envelope,
  ctx: LeasedContext,
  deps: ObservedDeps,
): LeasedContext['onceEach'] {
  return (name, items, effect, options) =>
    ctx.onceEach(
      name,
      items,
      (item, idempotencyKey, signal) =>
        observedEffect(event, deps, idempotencyKey, () => effect(item, idempotencyKey, signal)),
      options,
    );
}

/** Runs an effect as a call that may crash, lose its response or take effect late. */
async function observedEffect<T>(
  event: Envelope,
  { actor, memory, consumer, log, violate }: ObservedDeps,
  idempotencyKey: string,
  effect: () => Promise<T>,
): Promise<T> {
  const name = idempotencyKey.slice(`${consumer}:${event.eventId}:`.length);
  const item = memory.item(inboxKey(consumer, event.eventId));
  if (item !== undefined && asRow<InboxRow>(item).effects?.[name]?.status === 'COMPLETED')
    violate(`The effect "${name}" is run although its result is stored`);
  const other = log.running.get(idempotencyKey);
  if (other !== undefined && other.actor.invocation() === other.invocation)
    violate(`The effect "${name}" is run by two workers at once`);
  log.running.set(idempotencyKey, { actor, invocation: actor.invocation() });
  try {
    return await actor.call({
      label: `effect "${name}"`,
      perform: async () => {
        log.happened.set(idempotencyKey, (log.happened.get(idempotencyKey) ?? 0) + 1);
        return effect();
      },
      effect: true,
      thawed: () => violate(`The effect "${name}" goes on although its batch was answered`),
      failures: [{ label: 'it fails', error: () => named('ProviderError', 'The provider is down') }],
    });
  } finally {
    log.running.delete(idempotencyKey);
  }
}
