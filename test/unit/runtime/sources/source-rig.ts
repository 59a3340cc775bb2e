import type { Handler, LeasedContext } from '../../../../lambdas/runtime/consume/handler.ts';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import type { ReceivedEvent } from '../../../../lambdas/runtime/events/event.ts';
import {
  createInboxProcessor,
  type InboxProcessorDeps,
} from '../../../../lambdas/runtime/sources/inbox-processor.ts';
import { failedKey, inboxKey } from '../../../../lambdas/runtime/store/keys.ts';
import { envelopeOf } from '../../../support/envelope-of.ts';
import { consumerConfig, rig, runThrough, ThingHappened } from '../../../support/runtime-rig.ts';

/** The consumer of these tests. */
const CONSUMER = consumerConfig.consumer;

/** An inbox of a source on the runtime's rig. */
export function sourceRig(options: Parameters<typeof rig>[0] = {}, deps: Partial<InboxProcessorDeps> = {}) {
  const parts = rig(options);
  const { clock, table, telemetry, memory, outbox } = parts;
  const stopped: number[] = [];
  const inbox = createInboxProcessor({
    config: consumerConfig,
    table,
    clock,
    telemetry,
    stopProcess: () => void stopped.push(clock.now()),
    ...deps,
  });
  return {
    ...parts,
    inbox,
    /** The times at which the process would have been stopped. */
    stopped,
    /** A new event's envelope, as a source carries it. */
    envelope: async (n = 1) => {
      const [entry] = await outbox.entries([parts.happened(n)]);
      return envelopeOf(entry?.Put.Item);
    },
    /** Lets everything happen that needs no time but its turns. */
    idle: async () => {
      for (let turn = 0; turn < 100; turn += 1) await clock.advance(1);
    },
    /** Lets time pass until a promise settles. */
    through: <T>(promise: Promise<T>) => runThrough(clock, promise),
    row: (eventId: string) => memory.item(inboxKey(CONSUMER, eventId)),
    hint: (eventId: string) => memory.item(failedKey(CONSUMER, eventId)),
  };
}

/** A handler, and the events that it received. */
export function counting(
  handle: (event: ReceivedEvent, ctx: LeasedContext) => Promise<unknown> = async () => {},
): { readonly handler: Handler; readonly events: ReceivedEvent[] } {
  const events: ReceivedEvent[] = [];
  const handler = leased(ThingHappened, async (event, ctx) => {
    events.push(event);
    return handle(event, ctx);
  });
  return { handler, events };
}

/** A promise that a test settles. */
export function gate() {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
