import { expect, test } from 'vitest';
import { dynamoRows } from '../../../cli/deployment/dynamo-rows.ts';
import { createStatusReader } from '../../../cli/reports/status/status-reader.ts';
import { leased } from '../../../lambdas/runtime/index.ts';
import { outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import type { Query, Table } from '../../../lambdas/runtime/store/table.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { directory, mailroomInMemory, worker } from './support/mailroom-in-memory.ts';
import { resourcesInMemory } from './support/resources-in-memory.ts';

/** A Mailroom whose reads are counted, and a reader of its status. */
function watched() {
  const mailroom = mailroomInMemory([leased(ThingHappened, async () => {})]);
  const { table, queues, clock } = mailroom;
  const deployed = resourcesInMemory();
  const reads = { outbox: 0, depths: 0, wiring: 0 };
  const faults = { depth: undefined as Error | undefined };
  const counted: Table = {
    ...table,
    query: (query: Query) => {
      if (query.pk.startsWith('OUTBOX#')) reads.outbox += 1;
      return table.query(query);
    },
  };
  const status = createStatusReader({
    directory,
    region: 'eu-west-1',
    clock,
    table: counted,
    stored: dynamoRows(counted),
    queues: {
      ...queues,
      depth: async (url) => {
        reads.depths += 1;
        if (faults.depth !== undefined) throw faults.depth;
        return queues.depth(url);
      },
    },
    resources: {
      ...deployed.resources,
      hasBus: (name) => {
        reads.wiring += 1;
        return deployed.resources.hasBus(name);
      },
    },
  });
  const take = () => {
    const taken = { ...reads };
    Object.assign(reads, { outbox: 0, depths: 0, wiring: 0 });
    return taken;
  };
  return { ...mailroom, deployed, status, faults, take };
}

test('a status that is read again reads the wiring every 50 seconds and the pending events once a minute', async () => {
  const { status, clock, publish, take } = watched();
  await publish();
  await status.read();
  expect(take()).toMatchObject({ outbox: expect.any(Number), depths: 4, wiring: 1 });
  for (let seconds = 10; seconds < 60; seconds += 10) {
    await clock.advance(10_000);
    await status.read();
    expect(take()).toEqual({
      // A minute that has become old enough for the sample.
      outbox: seconds === 30 ? 2 : 0,
      depths: 4,
      wiring: seconds === 50 ? 1 : 0,
    });
  }
  await clock.advance(10_000);
  await status.read();
  expect(take()).toMatchObject({ outbox: expect.toSatisfy((n: number) => n > 0), wiring: 0 });
});

test('a kept age goes on growing', async () => {
  const { status, clock, outbox, happened } = watched();
  await outbox.commit({ events: [happened(1)] });
  await status.read();
  await clock.advance(30_000);
  expect((await status.read()).outbox).toMatchObject({ pending: 1, oldestPendingMs: 30_000 });
});

test('a problem of the wiring is looked at again after 10 seconds', async () => {
  const { status, clock, deployed } = watched();
  deployed.buses.clear();
  expect((await status.read()).wiring.problems).toMatchObject([{ problem: 'no-bus' }]);
  deployed.buses.add(directory.mailroom.bus);
  await clock.advance(9_000);
  expect((await status.read()).wiring.problems).toHaveLength(1);
  await clock.advance(1_000);
  expect((await status.read()).wiring.problems).toEqual([]);
});

test('events that are stuck are looked at again after 10 seconds', async () => {
  const { status, clock, outbox, happened, memory } = watched();
  const [event] = await outbox.commit({ events: [happened(1)] });
  await clock.advance(6 * 60_000);
  expect((await status.read()).outbox.pending).toBe(1);
  const { PK, SK } = outboxKeyOf(event?.eventId ?? '');
  await memory.write({ Delete: { Key: { PK, SK } } });
  await clock.advance(10_000);
  expect((await status.read()).outbox.pending).toBe(0);
});

test('two readers of one moment share the depth of a queue', async () => {
  const { status, clock, take } = watched();
  await Promise.all([status.read(), status.depth(worker.queue)]);
  expect(take().depths).toBe(4);
  await clock.advance(5_000);
  await status.depth(worker.queue);
  expect(take().depths).toBe(1);
});

test('everything is read after forget, and a failed reading is not kept', async () => {
  const { status, faults, take } = watched();
  await status.read();
  take();
  status.forget();
  await status.read();
  expect(take()).toMatchObject({ outbox: expect.toSatisfy((n: number) => n > 0), depths: 4, wiring: 1 });
  status.forget();
  faults.depth = new Error('Rate exceeded');
  await expect(status.read()).rejects.toThrow('Rate exceeded');
  faults.depth = undefined;
  expect((await status.read()).consumers.worker).toMatchObject({ queued: 0 });
});
