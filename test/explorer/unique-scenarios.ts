import { isMailroomError } from '../../lambdas/runtime/base/errors.ts';
import { DAY_MS } from '../../lambdas/runtime/base/units.ts';
import { createOutbox } from '../../lambdas/runtime/store/dynamo/outbox.ts';
import { uniqueKey } from '../../lambdas/runtime/store/keys.ts';
import type { Table } from '../../lambdas/runtime/store/table.ts';
import type { Actor, Scheduler } from '../../testing/explorer/actor.ts';
import { watchedTable } from '../../testing/explorer/consumer-table.ts';
import type { Scenario } from '../../testing/explorer/exploration.ts';
import { createPastItems } from '../../testing/explorer/past-items.ts';
import { scheduledTable } from '../../testing/explorer/ports.ts';
import { digest } from '../../testing/explorer/world-digest.ts';
import { memoryTable } from '../../testing/index.ts';
import { consumerConfig, ThingHappened } from '../support/runtime-rig.ts';
import type { Bounds } from './relay-scenarios.ts';

/** Changes the table that the code gets. */
export interface UniqueTamper {
  readonly table?: (table: Table) => Table;
}

const FACT = ThingHappened.create({ aggregateId: 'thing-1', data: { n: 1 }, uniqueBy: 'fact' });

/** The most calls of a producer that does not know the outcome of the one before. */
const CALLS_MAX = 5;

const FUNCTION_MS = 30_000;

/** Producers that commit one fact: each calls again until it knows the outcome. */
export function uniqueScenarios({ budget, actors }: Bounds, tamper: UniqueTamper = {}): Scenario[] {
  return [
    {
      name: 'producers of one fact, each of which repeats a commit without an answer',
      budget,
      begin: async (scheduler: Scheduler) => {
        const memory = memoryTable({ clock: { now: () => scheduler.now(), sleep: async () => {} } });
        const past = createPastItems();
        const names: (string | undefined)[] = [];
        const events = () => memory.items().filter(({ SK }) => String(SK).startsWith('EVENT#'));

        async function produce(actor: Actor): Promise<void> {
          const watched = watchedTable(memory, (change) => past.changed(change));
          const own = scheduledTable(actor, watched, past);
          const table = tamper.table?.(own) ?? own;
          const { clock, random } = actor;
          const outbox = createOutbox({ config: consumerConfig, table, clock, random });
          await actor.invoke(FUNCTION_MS, async () => {
            for (let calls = 0; calls < CALLS_MAX; calls += 1) {
              try {
                const [event] = await outbox.commit({ events: [FACT] });
                names.push(event?.eventId);
                return;
              } catch (error) {
                if (!isMailroomError(error, 'ALREADY_COMMITTED')) continue;
                names.push(error.firstEventId);
                return;
              }
            }
          });
        }

        for (let number = 1; number <= actors; number += 1)
          void produce(scheduler.actor(`producer ${number}`));
        return {
          state: () => digest([memory.items(), names]),
          deadlines: () => [],
          violation: () => (events().length > 1 ? 'A fact was committed twice' : undefined),
          settle: (again: Scheduler) => void produce(again.actor('rest')),
          verdict: () => {
            const [row] = events();
            const eventId = String(row?.SK).slice('EVENT#'.length);
            if (names.some((name) => name !== eventId))
              return 'A producer was told another event than the one committed';
            const key = memory.item(uniqueKey(ThingHappened, 'fact'));
            if (key?.eventId !== eventId) return 'The row of the key does not name the event';
            return Number(key.expiresAt) * 1_000 >= scheduler.now() + 34 * DAY_MS
              ? undefined
              : 'The key is free too early';
          },
        };
      },
    },
  ];
}
