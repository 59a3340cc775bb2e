import { sendInPlace } from '../../cli/changes/resend/send-in-place.ts';
import type { DeadLetter } from '../../cli/reports/dead-letters/dead-letters.ts';
import { discardMessage } from '../../lambdas/runtime/operations/message-operations.ts';
import { readable } from '../../lambdas/runtime/store/stored-rows.ts';
import type { Hole } from './relay-holes.ts';
import type { ResendTamper } from './resend-scenarios.ts';

/** The rules by which other data takes the place of an event, one by one. */
export const RESEND_HOLES: readonly Hole<ResendTamper>[] = [
  {
    rule: 'the old event is discarded before the one in its place is sent',
    where: 'event that is redriven',
    needs: { deviations: 1 },
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
    where: 'event that is redriven',
    needs: { deviations: 1 },
    tamper: {
      send: async (deps, { consumer, eventId, newEventId, body }, { by, reason }) => {
        const { name } = consumer;
        const decision = { consumer: name, eventId, by, reason, replacedBy: newEventId };
        await discardMessage(deps, decision);
        await deps.queues.send(consumer.queue, body);
      },
    },
    found: /[23] ran/,
  },
  {
    rule: 'a dead letter is handled only once the event in place of its own was received',
    where: 'redriven by the command',
    needs: { deviations: 1 },
    tamper: { receive: (deadLetter) => ({ ...deadLetter, ...withoutReplacement(deadLetter) }) },
    found: /deleted before/,
  },
  {
    rule: 'an event is in place of another one by an attribute, not by the words of a reason',
    where: 'for a reason that names another event',
    needs: { deviations: 1 },
    tamper: { receive: (deadLetter) => ({ ...deadLetter, replacements: namedInReason(deadLetter) }) },
    found: /0 ran/,
  },
  {
    rule: 'no effect was started since the plan',
    where: 'whose effect has happened',
    needs: { deviations: 2 },
    tamper: {
      send: async (deps, replacement, note) => {
        const { consumer, eventId } = replacement;
        const row = await deps.stored.inbox.byEvent(consumer.name, eventId, true);
        await sendInPlace(deps, { ...replacement, row }, note);
      },
    },
    found: /for 2 events/,
  },
];

/** The event that the reason of a discard names, as if it had been sent in place of the discarded one and not received. */
function namedInReason({ row }: DeadLetter): DeadLetter['replacements'] {
  const known = readable(row);
  const reason = known?.status === 'DISCARDED' ? known.discardedReason : undefined;
  const [, eventId] = /as (\S+)$/.exec(reason ?? '') ?? [];
  return eventId === undefined ? [] : [{ eventId, row: undefined }];
}

/** The standing of a dead letter by its own row alone: DISCARDED, whatever for. */
function withoutReplacement({ row }: DeadLetter): Pick<DeadLetter, 'row' | 'replacements'> {
  const known = readable(row);
  const settled = known?.status === 'DISCARDED' ? { ...known, replacedBy: undefined } : known;
  return { row: settled, replacements: [] };
}
