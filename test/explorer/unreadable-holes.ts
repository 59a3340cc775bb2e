import { discardOne } from '../../cli/changes/discard/discard-one.ts';
import { discardSentFirst } from '../../cli/changes/discard/sent-first.ts';
import type { Hole } from './relay-holes.ts';
import type { UnreadableTamper } from './unreadable-scenarios.ts';

/** The rules by which an unreadable message of an event is discarded, one by one. */
export const UNREADABLE_HOLES: readonly Hole<UnreadableTamper>[] = [
  {
    rule: 'the event of an unreadable message is sent before the message is discarded',
    where: 'part of an event',
    needs: { faults: 1, deviations: 1 },
    tamper: {
      discard: async (deps, source, step, note) => {
        const discarded = await discardOne(deps, source, step.deadLetter, note);
        const kept = { ...deps, queues: { ...deps.queues, remove: async () => {} } };
        await discardSentFirst(kept, source, step, note);
        return discarded;
      },
    },
    found: /ran 0 times/,
  },
];
