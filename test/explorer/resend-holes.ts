import { sendInPlace } from '../../cli/dead-letters/resend.ts';
import { readInbox } from '../../cli/reading/message-reader.ts';
import { replacedBy } from '../../cli/reading/resent-event.ts';
import { discardMessage } from '../../lambdas/runtime/operations/message-operations.ts';
import { mintEventId } from '../../lambdas/runtime/store/event-id.ts';
import type { Hole } from './relay-holes.ts';
import type { ResendTamper } from './resend-scenarios.ts';

/** The rules by which other data takes the place of an event, one by one. */
export const RESEND_HOLES: readonly Hole<ResendTamper>[] = [
  {
    rule: 'the old event is discarded before the one in its place is sent',
    where: 'that is redriven',
    budget: { faults: 0, stalls: 0 },
    deviations: 1,
    tamper: {
      send: async (deps, replacement, note) => {
        await deps.queues.send(replacement.consumer.queue, replacement.body);
        await sendInPlace({ ...deps, queues: { send: async () => '' } }, replacement, note);
      },
    },
    found: /[23] ran/,
  },
  {
    rule: 'only the event that the row of the old one names is sent',
    where: 'that is redriven',
    budget: { faults: 0, stalls: 0 },
    deviations: 1,
    tamper: {
      send: async (deps, { consumer, eventId, newEventId, body }, { by, reason }) => {
        const { name, inboxRetentionDays } = consumer;
        const decision = { consumer: name, eventId, by, reason: replacedBy(newEventId, reason) };
        await discardMessage(deps, { ...decision, inboxRetentionDays });
        await deps.queues.send(consumer.queue, body);
      },
    },
    found: /[23] ran/,
  },
  {
    rule: 'the same data has the same id',
    where: 'that is redriven',
    budget: { faults: 1, stalls: 0 },
    deviations: 1,
    tamper: { idOf: (operator) => mintEventId(operator.clock.now(), 1, operator.random) },
    found: /0 ran/,
  },
  {
    rule: 'no effect was started since the plan',
    where: 'whose effect has happened',
    budget: { faults: 0, stalls: 0 },
    deviations: 2,
    tamper: {
      send: async (deps, replacement, note) => {
        const { consumer, eventId } = replacement;
        const row = await readInbox(deps.table, consumer.name, eventId, true);
        await sendInPlace(deps, { ...replacement, row }, note);
      },
    },
    found: /for 2 events/,
  },
];
