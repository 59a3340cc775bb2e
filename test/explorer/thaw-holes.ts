import { withDeadline } from '../../lambdas/runtime/base/clock.ts';
import { isMailroomError } from '../../lambdas/runtime/base/errors.ts';
import type { Handler, LeasedContext } from '../../lambdas/runtime/consume/handler.ts';
import type { Envelope } from '../../lambdas/runtime/events/event.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import type { Hole } from './relay-holes.ts';

/** How long before its end a function answers whatever still runs. */
const ANSWER_MS = 2_000;

/** A function that answers in time, whatever still runs in it. */
const ANSWERS_IN_TIME: InboxTamper = {
  tamperConsumer:
    (consume, { clock }) =>
    (event, context) =>
      withDeadline(clock, context.getRemainingTimeInMillis() - ANSWER_MS, consume(event, context), () => ({
        batchItemFailures: event.Records.map(({ messageId }) => ({ itemIdentifier: messageId })),
      })),
};

/** The rules by which a function that has answered changes nothing more, one by one. */
export const THAW_HOLES: readonly Hole<InboxTamper>[] = [
  {
    rule: 'no effect starts once its handler has ended',
    where: 'a handler whose time is up',
    needs: { faults: 1, deviations: 1 },
    tamper: { tamperHandler: startsAlways },
    found: /is run although its result is stored|is run by two workers at once/,
  },
  {
    rule: 'an effect that still runs holds the response',
    where: 'an effect under way',
    needs: { faults: 1, stalls: 1, deviations: 2 },
    tamper: ANSWERS_IN_TIME,
    found: /The effect "charge" goes on although its batch was answered/,
  },
];

/** A handler whose effects run even after it has ended. */
function startsAlways(handler: Handler): Handler {
  if (handler.kind === 'transactional') return handler;
  return {
    ...handler,
    handle: (event: never, ctx: LeasedContext) => {
      const { eventId }: Envelope = event;
      const once: LeasedContext['once'] = async (name, effect) => {
        try {
          return await ctx.once(name, effect);
        } catch (error) {
          if (!isMailroomError(error, 'HANDLER_ENDED')) throw error;
          return (await effect(`worker:${eventId}:${name}`, ctx.signal)) as never;
        }
      };
      return handler.handle(event, { ...ctx, once });
    },
  };
}
