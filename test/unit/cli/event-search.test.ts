import { expect, test } from 'vitest';
import { searchEvents } from '../../../cli/reports/events/search-events.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { withStored } from '../../support/with-stored.ts';
import { directory, mailroomInMemory } from './support/mailroom-in-memory.ts';

/** Long ids, so that the envelope is stored compressed. */
const LONG = 'order-'.repeat(300);

const thing = (aggregateId: string, n: number, correlationId?: string) =>
  ThingHappened.create({ aggregateId, correlationId, data: { n } });

/** Two events an hour ago, two now. */
async function searched(id: string, sinceMs: number, signal = new AbortController().signal) {
  const mailroom = mailroomInMemory([leased(ThingHappened, async () => {})]);
  const old = await mailroom.outbox.commit({ events: [thing('order-1', 1), thing('order-2', 77)] });
  await mailroom.clock.advance(3_600_000);
  const young = await mailroom.outbox.commit({
    events: [thing('order-1', 3), thing('other', 4, 'chain-9'), thing(LONG, 5)],
  });
  expect(mailroom.memory.items().filter(({ encoding }) => encoding !== undefined)).toHaveLength(1);
  const steps: string[] = [];
  const deps = {
    directory,
    table: mailroom.table,
    signal,
    onProgress: (read: number, of: number, found: number) => {
      steps.push(`${read}/${of} ${found}`);
    },
  };
  const until = mailroom.clock.now();
  const found = await searchEvents(withStored(deps), id, { since: until - sinceMs, until });
  const ids = [...old, ...young].map(({ eventId }) => eventId);
  return { found: found.map((eventId) => ids.indexOf(eventId)), steps };
}

test('events are found by their aggregate, newest first', async () => {
  expect((await searched('order-1', 2 * 3_600_000)).found).toEqual([2, 0]);
});

test('events whose envelopes are stored compressed are found', async () => {
  expect((await searched(LONG, 2 * 3_600_000)).found).toEqual([4]);
});

test('events are found by their chain, and by a value in their data', async () => {
  expect((await searched('chain-9', 3_600_000)).found).toEqual([3]);
  expect((await searched('77', 2 * 3_600_000)).found).toEqual([1]);
});

test('only the requested range is read, step by step', async () => {
  expect(await searched('order-1', 45 * 60_000)).toEqual({ found: [2], steps: ['46/46 1'] });
  const { found, steps } = await searched('order-1', 5 * 3_600_000);
  expect(found).toEqual([2, 0]);
  expect(steps).toEqual(['250/301 2', '301/301 2']);
});

test('a part of an id, or of a text, is not enough', async () => {
  expect((await searched('order', 2 * 3_600_000)).found).toEqual([]);
});

test('a search ends when it is stopped', async () => {
  const stop = new AbortController();
  stop.abort();
  await expect(searched('order-1', 3_600_000, stop.signal)).rejects.toThrow('aborted');
});

/** The wait for one query that a laptop sees, milliseconds. */
const QUERY_MS = 30;

test('six hours of eight shards are searched in two seconds of waiting, and only matching rows are transferred', async () => {
  const mailroom = mailroomInMemory([leased(ThingHappened, async () => {})]);
  for (const order of ['order-1', 'order-2', 'order-2'])
    await mailroom.outbox.commit({ events: [thing(order, 1)] });
  let [queries, rows, rounds] = [0, 0, 0];
  const waiting: (() => void)[] = [];
  const table: typeof mailroom.table = {
    ...mailroom.table,
    query: async (query) => {
      queries += 1;
      await new Promise<void>((resolve) => waiting.push(resolve));
      const page = await mailroom.table.query(query);
      rows += page.items.length;
      return page;
    },
  };
  const until = mailroom.clock.now();
  const search = searchEvents(
    withStored({
      directory: { ...directory, mailroom: { ...directory.mailroom, shards: 8 } },
      table,
      signal: new AbortController().signal,
      onProgress: () => {},
    }),
    'order-1',
    { since: until - 6 * 3_600_000, until },
  );
  let found: readonly string[] | undefined;
  const ended = search.then((ids) => {
    found = ids;
  });
  // Answers all queries that wait, and counts the round: what a query costs in time is the wait for it.
  while (found === undefined) {
    await new Promise(setImmediate);
    if (waiting.length > 0) rounds += 1;
    for (const answer of waiting.splice(0)) answer();
  }
  await ended;
  expect(found).toHaveLength(1);
  expect(queries).toBe(361 * 8);
  expect(rows).toBe(1);
  expect(rounds * QUERY_MS).toBeLessThan(2_000);
});

test('an id that JSON may escape is compared by the command', async () => {
  const mailroom = mailroomInMemory([leased(ThingHappened, async () => {})]);
  const id = 'caf\u00e9 "7"';
  const [event] = await mailroom.outbox.commit({ events: [thing(id, 1)] });
  const { clock, table } = mailroom;
  const deps = { directory, table, signal: new AbortController().signal, onProgress: () => {} };
  const window = { since: clock.now() - 60_000, until: clock.now() };
  expect(await searchEvents(withStored(deps), id, window)).toEqual([event?.eventId]);
});
