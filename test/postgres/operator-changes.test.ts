import type { Pool } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { discard } from '../../cli/changes/discard/discard.ts';
import { makeRepair, planAuditRepair, shownRepair } from '../../cli/changes/repair/audit-repair.ts';
import { republish } from '../../cli/changes/republish.ts';
import { HOUR_MS } from '../../lambdas/runtime/base/units.ts';
import { createAudit } from '../../lambdas/runtime/operations/audit/audit.ts';
import { createPostgresRelay } from '../../lambdas/runtime/postgres/postgres-relay.ts';
import { eventIdShard, mintEventId, outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import { deadKey } from '../../lambdas/runtime/store/keys.ts';
import { postgresTransitions } from '../../lambdas/runtime/store/postgres/relay-transitions.ts';
import { SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import { type MemoryBus, memoryBus } from '../../testing/memory-bus.ts';
import { capturedIo } from '../support/captured-io.ts';
import { jsonOf } from '../support/operated-mailroom.ts';
import { memoryDeployment } from '../unit/cli/support/memory-deployment.ts';
import {
  deadEvent,
  logOf,
  mailroomWith,
  type Operated,
  publishedEvent,
  relayPartsOf,
  startOperated,
  statesOf,
} from './support/operated.ts';

let operated: Operated;
let pool: Pool;

beforeAll(async () => {
  operated = await startOperated('operator-changes');
  pool = operated.pool;
});
beforeEach(() => operated.clear());
afterAll(() => operated.close());

const APPLY = ['--apply', '--reason', 'fixed'];

/** A pass of a relay of the database. */
const relayPass = (bus: MemoryBus) => createPostgresRelay({ ...relayPartsOf(operated), bus }).pass();

const publishedIds = (bus: MemoryBus) => bus.published().map(({ detail }) => JSON.parse(detail).eventId);

/** A DEAD event in the table. */
function deadItems(eventId: string): readonly [Item, Item] {
  const failure = {
    schema: SCHEMA,
    deadAt: 1,
    type: 'ThingHappened',
    lastError: 'no',
    fingerprint: 'relay no',
  };
  const row = {
    ...outboxKeyOf(eventId),
    ...failure,
    status: 'DEAD',
    leaseUntil: 1,
    attempts: 5,
    source: 'things',
  };
  const envelope = JSON.stringify({
    eventId,
    type: 'ThingHappened',
    version: 1,
    aggregateType: 'Thing',
    aggregateId: '1',
    occurredAt: 1,
    correlationId: eventId,
    data: { n: 1 },
  });
  return [
    { ...row, envelope },
    { ...deadKey(eventIdShard(eventId), eventId), ...failure },
  ];
}

describe('the DEAD events of both stores', () => {
  const both = async (sleep?: (dynamo: () => Item | undefined) => Promise<void>) => {
    const inPostgres = await deadEvent(operated);
    const inTable = mintEventId(Date.now() - 60_000, 1);
    const row = () => made.dynamo.item(outboxKeyOf(inTable));
    const made = await mailroomWith(operated, deadItems(inTable), async () => sleep?.(row));
    return { made, inPostgres, inTable, row };
  };

  test('are redriven by one command, and end once their relays have published them', async () => {
    const bus = memoryBus();
    const { made, inPostgres, inTable, row } = await both(async (row) => {
      await relayPass(bus);
      // The sweep of the table.
      const { PK = '', SK = '', ...item } = row() ?? {};
      if (item.status === 'PENDING')
        await made.dynamo.write({ Put: { Item: { PK, SK, ...item, status: 'PUBLISHED', publishedAt: 2 } } });
    });
    const planned = await jsonOf(made, 'dlq', 'redrive', 'dead');
    expect(planned).toMatchObject({ applied: false, count: 2, verdicts: { runs: 2 } });
    expect(await statesOf(operated, inPostgres)).toEqual(['dead']);
    const applied = await jsonOf(made, 'dlq', 'redrive', 'dead', ...APPLY);
    expect(applied).toMatchObject({ applied: true, processed: 2, stopped: false, exitCode: 0 });
    expect(publishedIds(bus)).toEqual([inPostgres]);
    expect(await statesOf(operated, inPostgres)).toEqual(['published']);
    expect(row()).toMatchObject({ status: 'PUBLISHED', requeuedReason: 'fixed' });
    expect(await logOf(operated)).toEqual([
      { operator: 'ada', command: 'postgres requeue', subject: inPostgres, reason: 'fixed' },
    ]);
    expect(inTable).not.toBe(inPostgres);
  });

  test('are discarded by one command, and published by no relay after that', async () => {
    const bus = memoryBus();
    const { made, inPostgres, inTable, row } = await both();
    expect(await jsonOf(made, 'dlq', 'discard', 'dead', '--all')).toMatchObject({ applied: false });
    expect(await statesOf(operated, inPostgres)).toEqual(['dead']);
    const { deadLetters, exitCode } = await jsonOf(made, 'dlq', 'discard', 'dead', '--all', ...APPLY);
    expect(deadLetters).toMatchObject([{ outcome: 'discarded' }, { outcome: 'discarded' }]);
    expect(exitCode).toBe(0);
    await relayPass(bus);
    expect(publishedIds(bus)).toEqual([]);
    expect(await statesOf(operated, inPostgres)).toEqual(['discarded']);
    expect(row()).toMatchObject({ status: 'DISCARDED', discardedReason: 'fixed' });
    expect(await jsonOf(made, 'dlq', 'list', 'dead')).toMatchObject({
      deadLetterSources: [{ count: 0 }],
    });
    for (const id of [inPostgres, inTable])
      expect(await jsonOf(made, 'why', id)).toMatchObject({ verdict: { state: 'discarded' } });
    expect(await made.stored.outbox.byId(inPostgres)).toMatchObject({
      discardedBy: 'ada',
      discardedReason: 'fixed',
    });
  });

  test('show their payload', async () => {
    const { made, inPostgres } = await both();
    const { body } = await jsonOf(made, 'dlq', 'show', 'dead', inPostgres, '--payload');
    expect(JSON.parse(body)).toMatchObject({ eventId: inPostgres });
  });
});

describe('a DEAD event that changes between the plan and its discard', () => {
  const NOTE = { by: 'ada', reason: 'other' };

  const discarding = async (
    change: (eventId: string, made: Awaited<ReturnType<typeof mailroomWith>>) => Promise<unknown>,
  ) => {
    const eventId = await deadEvent(operated);
    const made = await mailroomWith(operated);
    const deployment = memoryDeployment(made, capturedIo().io, {});
    const options = { source: 'dead', ids: [eventId], apply: true, reason: 'fixed' };
    const plan = await discard.plan(deployment, options);
    await change(eventId, made);
    const steps = await discard.apply(deployment, plan, options);
    return { eventId, outcomes: steps.map(({ outcome }) => outcome) };
  };

  test('stays PENDING if another operator has requeued it', async () => {
    const { eventId, outcomes } = await discarding((id, made) => made.outboxChanges.requeue(id, NOTE));
    expect(outcomes).toEqual(['handled']);
    expect(await statesOf(operated, eventId)).toEqual(['pending']);
  });

  test('stays PUBLISHED if a relay that was late has published it', async () => {
    const { eventId, outcomes } = await discarding(async (id) => {
      const late = {
        eventId: id,
        fence: mintEventId(1, 1),
        leaseUntil: 0,
        attempts: 0,
        unread: undefined,
      } as const;
      const entry = { source: 'things', detailType: 'ThingHappened', detail: '', traceHeader: undefined };
      await postgresTransitions(relayPartsOf(operated)).markPublished([{ ...late, entry }]);
    });
    expect(outcomes).toEqual(['handled']);
    expect(await statesOf(operated, eventId)).toEqual(['published']);
  });

  test('is reported as discarded if another operator has discarded it, whose name stays', async () => {
    const { eventId, outcomes } = await discarding((id, made) => made.outboxChanges.discard(id, NOTE));
    expect(outcomes).toEqual(['discarded']);
    expect(
      (await pool.query('SELECT reason FROM mailroom.discarded WHERE event_id = $1', [eventId])).rows,
    ).toEqual([{ reason: 'other' }]);
  });
});

describe('events republish', () => {
  test('has a relay of the database publish the event once more, and waits for it', async () => {
    const bus = memoryBus();
    const eventId = await publishedEvent(operated);
    const made = await mailroomWith(operated, [], async () => void (await relayPass(bus)));
    expect(await jsonOf(made, 'events', 'republish', eventId)).toMatchObject({ applied: false, eventId });
    expect(await statesOf(operated, eventId)).toEqual(['published']);
    expect(await jsonOf(made, 'events', 'republish', eventId, ...APPLY)).toMatchObject({
      applied: true,
      exitCode: 0,
    });
    expect(publishedIds(bus)).toEqual([eventId]);
    expect(await statesOf(operated, eventId)).toEqual(['published', 'published']);
    expect(await logOf(operated)).toMatchObject([
      { operator: 'ada', command: 'postgres republish', subject: eventId },
    ]);
  });

  test('queues it once for two operators who have read the same', async () => {
    const bus = memoryBus();
    const eventId = await publishedEvent(operated);
    const made = await mailroomWith(operated, [], async () => void (await relayPass(bus)));
    const deployment = memoryDeployment(made, capturedIo().io, {});
    const options = { eventId, apply: true, reason: 'fixed' };
    const plan = await republish.plan(deployment, options);
    expect(await republish.apply(deployment, plan, options)).toBe(true);
    expect(await republish.apply(deployment, plan, options)).toBe(true);
    expect(publishedIds(bus)).toEqual([eventId]);
  });

  test.each(['pending', 'dead', 'discarded', 'cancelled'])('refuses an event that is %s', async (table) => {
    const eventId = await deadEvent(operated);
    await pool.query('DELETE FROM mailroom.dead');
    const values = {
      pending: '',
      dead: ", clock_timestamp(), 1, '', ''",
      discarded: ", clock_timestamp(), 'a', 'b'",
      cancelled: ', clock_timestamp()',
    };
    await pool.query(`INSERT INTO mailroom.${table} VALUES ('${eventId}'${values[table as 'dead']})`);
    const made = await mailroomWith(operated);
    await expect(jsonOf(made, 'events', 'republish', eventId, ...APPLY)).rejects.toThrow('NOT_PUBLISHED');
    expect(await logOf(operated)).toEqual([]);
  });

  test('reports an event that no relay publishes, and leaves it in the queue', async () => {
    const eventId = await publishedEvent(operated);
    const made = await mailroomWith(operated);
    let now = Date.now();
    const clock = {
      ...made.clock,
      now: () => now,
      sleep: async () => {
        now += 60_000;
      },
    };
    await expect(
      jsonOf({ ...made, clock } as never, 'events', 'republish', eventId, ...APPLY),
    ).rejects.toThrow('NOT_REPUBLISHED');
    expect(await statesOf(operated, eventId)).toEqual(['pending', 'published']);
  });

  test('reports an event that the bus refuses', async () => {
    const bus = memoryBus({ failEntry: () => ({ code: 'MalformedDetail', message: 'Detail is malformed' }) });
    const eventId = await publishedEvent(operated);
    const made = await mailroomWith(operated, [], async () => {
      await relayPass(bus);
      await pool.query('UPDATE mailroom.pending SET due_at = clock_timestamp()');
    });
    await expect(jsonOf(made, 'events', 'republish', eventId, ...APPLY)).rejects.toThrow(
      /NOT_REPUBLISHED[\s\S]*malformed/,
    );
    expect(await statesOf(operated, eventId)).toEqual(['dead', 'published']);
    await made.outboxChanges.discard(eventId, { by: 'ada', reason: 'broken' });
    expect(await made.stored.outbox.byId(eventId)).toMatchObject({ status: 'DISCARDED' });
  });
});

describe('the repair of an audit', () => {
  test('sends a missing event of the database to its consumer, which the next audit leaves time for', async () => {
    const at = Date.now() - HOUR_MS;
    const eventId = await publishedEvent(operated, at);
    const sent: unknown[] = [];
    const made = await mailroomWith(operated);
    const queues = {
      ...made.queues,
      send: async (_url: string, body: string) => String(sent.push(JSON.parse(body))),
    };
    const deployment = {
      ...made,
      queues,
      clockIsTrusted: true,
      region: 'eu-west-1',
      operator: async () => 'ada',
    };
    const audit = () =>
      createAudit({ ...made, rules: { describe: async () => undefined } }).run({
        since: at - HOUR_MS,
        until: Date.now(),
      });
    const report = await audit();
    const sending = await planAuditRepair(deployment, report);
    expect((await shownRepair(deployment, sending)).events).toMatchObject([{ eventId, consumer: 'worker' }]);
    expect(sent).toEqual([]);
    const { events, unsent } = await makeRepair(deployment, sending, 'the rule was off');
    expect([events, unsent]).toMatchObject([[{ eventId }], []]);
    expect(sent).toMatchObject([{ detail: { eventId }, source: 'things' }]);
    expect((await audit()).missing).toEqual([]);
    expect(await logOf(operated)).toMatchObject([
      { operator: 'ada', subject: eventId, reason: 'the rule was off' },
    ]);
  });

  test('does not send an event whose row has expired since', async () => {
    const at = Date.now() - HOUR_MS;
    const eventId = await publishedEvent(operated, at);
    const made = await mailroomWith(operated);
    expect(await made.outboxChanges.markResent(eventId, { by: 'a', reason: 'b' })).toBe(true);
    await pool.query('TRUNCATE mailroom.event, mailroom.published');
    expect(await made.outboxChanges.markResent(eventId, { by: 'a', reason: 'b' })).toBe(false);
  });
});
