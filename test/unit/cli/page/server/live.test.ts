import { describe, expect, test } from 'vitest';
import type { LiveMessage, Run } from '../../../../../cli/page/server/protocol.ts';
import { ACK } from '../../../../../cli/reports/findings/acknowledgements.ts';
import { HOUR_MS } from '../../../../../lambdas/runtime/base/units.ts';
import { eventIdTime, outboxKeyOf } from '../../../../../lambdas/runtime/store/event-id.ts';
import { recordOperation } from '../../../../../lambdas/runtime/store/operation-record.ts';
import { worker } from '../../support/mailroom-in-memory.ts';
import { liveRig } from './live-rig.ts';

const denied = (action: string) =>
  Object.assign(new Error(`User: ada is not authorized to perform: ${action}`), {
    name: 'AccessDeniedException',
  });

describe('the poller', () => {
  test('reads the outbox every 2 seconds, the queues every 5 and the status every 10', async () => {
    const { open, clock, take, toMidMinute } = liveRig();
    await toMidMinute();
    open();
    await clock.advance(0);
    take();
    await clock.advance(20_000);
    // Two shards; the queue of the consumer, and with the status the three dead-letter queues; the state of the sweep.
    expect(take()).toMatchObject({ outbox: 10 * 2, depth: 4 + 2 * 3, sweep: 2, wiring: 0 });
  });

  test('reads the wiring every 50 seconds', async () => {
    const { open, clock, take } = liveRig();
    open();
    await clock.advance(0);
    expect(take().wiring).toBe(1);
    await clock.advance(49_000);
    expect(take().wiring).toBe(0);
    await clock.advance(12_000);
    expect(take().wiring).toBe(1);
  });

  test('reads nothing before the first subscriber and after the last one', async () => {
    const { open, clock, take } = liveRig();
    await clock.advance(60_000);
    expect(Object.values(take()).some((count) => count > 0)).toBe(false);
    const [first, second] = [open(), open()];
    await clock.advance(10_000);
    first.close();
    take();
    await clock.advance(10_000);
    expect(take().outbox).toBeGreaterThan(0);
    second.close();
    second.close();
    await clock.advance(0);
    take();
    await clock.advance(600_000);
    expect(Object.values(take()).some((count) => count > 0)).toBe(false);
    expect(clock.sleeping()).toBe(0);
  });

  test('reads no more for two tabs than for one', async () => {
    const { open, clock, take, toMidMinute } = liveRig();
    await toMidMinute();
    const tabs = [open(), open(), open()];
    await clock.advance(0);
    take();
    await clock.advance(10_000);
    expect(take().outbox).toBe(5 * 2);
    const [first, ...others] = tabs.map((tab) => tab.flow());
    for (const flow of others) expect(flow).toEqual(first);
  });

  test('drops a tab whose stream fails, and stops with the last one', async () => {
    const { live, clock, take } = liveRig();
    live.subscribe(() => {
      throw new Error('The stream is closed');
    });
    await clock.advance(20_000);
    take();
    await clock.advance(60_000);
    expect(take().outbox).toBe(0);
    expect(clock.sleeping()).toBe(0);
  });

  test('reads at once for a tab that is opened after the last one failed', async () => {
    const { live, open, clock } = liveRig();
    let isClosed = false;
    live.subscribe(() => {
      if (isClosed) throw new Error('The stream is closed');
    });
    await clock.advance(1_000);
    isClosed = true;
    live.announce({ kind: 'run', run: { id: 'a' } as Run });
    const tab = open();
    await clock.advance(0);
    await clock.advance(0);
    expect(tab.flows().length).toBeGreaterThan(1);
  });

  test('starts over after a pause of more than a minute, and goes on after a shorter one', async () => {
    const { open, clock, outbox, happened } = liveRig();
    const first = open();
    await outbox.commit({ events: [happened(1)] });
    await clock.advance(4_000);
    expect(first.flow().events).toHaveLength(1);
    first.close();
    await clock.advance(50_000);
    const second = open();
    expect(second.flow()).toMatchObject({ events: [{ status: 'PENDING' }], status: { state: 'ok' } });
    await clock.advance(2_000);
    second.close();
    await clock.advance(120_000);
    expect(open().flow()).toMatchObject({ events: [], status: null });
  });

  test('shows who has acknowledged a finding, which is then no problem', async () => {
    const { open, clock, table, deployed } = liveRig();
    const mappings = deployed.mappings.get(worker.function) ?? [];
    deployed.mappings.set(
      worker.function,
      mappings.map((mapping) => ({ ...mapping, enabled: false })),
    );
    const tab = open();
    await clock.advance(1_000);
    const [finding] = tab.flow().status?.findings ?? [];
    expect(finding).toMatchObject({ state: 'broken' });
    expect(finding).not.toHaveProperty('acknowledged');
    const until = clock.now() + HOUR_MS;
    const ack = { command: ACK, subject: 'known', finding: finding?.id, until };
    await recordOperation({ table, clock }, { by: 'ada', reason: 'a new index', ...ack });
    await clock.advance(60_000);
    expect(tab.flow().status).toMatchObject({
      state: 'ok',
      findings: [{ acknowledged: { by: 'ada', until } }],
    });
  });

  test('reads everything at once after refresh', async () => {
    const { open, clock, take, live, deployed } = liveRig();
    const tab = open();
    await clock.advance(1_000);
    expect(tab.flow().status?.state).toBe('ok');
    const mappings = deployed.mappings.get(worker.function) ?? [];
    deployed.mappings.set(
      worker.function,
      mappings.map((mapping) => ({ ...mapping, enabled: false })),
    );
    take();
    live.refresh();
    await clock.advance(0);
    expect(take()).toMatchObject({ depth: 4, sweep: 1, wiring: 1 });
    expect(tab.flow().status).toMatchObject({
      state: 'broken',
      findings: [
        {
          state: 'broken',
          what: expect.stringMatching(/worker receives no messages.*ask first/),
          commands: [
            'aws cloudtrail lookup-events --lookup-attributes AttributeKey=EventName,AttributeValue=UpdateEventSourceMapping20150331 --max-results 5 --region eu-west-1',
            'aws lambda update-event-source-mapping --uuid worker-mapping --enabled --region eu-west-1',
          ],
        },
      ],
    });
  });

  test('reads again after a refresh that came during a reading', async () => {
    const { open, clock, live, gates, deployed } = liveRig();
    let release = () => {};
    gates.set(
      'depth',
      new Promise((resolve) => {
        release = resolve;
      }),
    );
    const tab = open();
    await clock.advance(0);
    deployed.buses.clear();
    live.refresh();
    gates.clear();
    release();
    await clock.advance(0);
    await clock.advance(0);
    expect(tab.flow().status?.wiring.problems).toMatchObject([{ problem: 'no-bus' }]);
    deployed.buses.add('bus');
    live.refresh();
    await clock.advance(0);
    expect(tab.flow().status?.wiring.problems).toEqual([]);
  });

  test('never has two readings of one part at a time', async () => {
    const { open, clock, gates, take } = liveRig();
    let release = () => {};
    gates.set(
      'depth',
      new Promise((resolve) => {
        release = resolve;
      }),
    );
    const first = open();
    await clock.advance(0);
    first.close();
    open();
    await clock.advance(60_000);
    // The queue of the consumer and, with the status, the three dead-letter queues.
    expect(take().depth).toBe(4);
    gates.clear();
    release();
    // The old run ends in one turn, and the new one reads in the next.
    await clock.advance(0);
    await clock.advance(0);
    expect(take().depth).toBe(4);
  });
});

describe('the flow', () => {
  test('shows an event from its commit to its effect, with its aggregate and its correlation id', async () => {
    const { open, clock, outbox, happened, publish, drain } = liveRig();
    const tab = open();
    const [event] = await outbox.commit({ events: [happened(1)] });
    await clock.advance(2_000);
    const shown = {
      eventId: event?.eventId,
      at: eventIdTime(event?.eventId ?? ''),
      type: 'ThingHappened',
      source: 'things',
      status: 'PENDING',
      consumers: { worker: 'waiting' },
      aggregateType: 'Thing',
      aggregateId: event?.aggregateId,
      correlationId: event?.correlationId,
      publishedAt: null,
    };
    expect(tab.flow().events).toEqual([shown]);
    await publish();
    const published = { ...shown, status: 'PUBLISHED', publishedAt: expect.any(Number) };
    await clock.advance(2_000);
    expect(tab.flow().events).toEqual([published]);
    await drain();
    await clock.advance(2_000);
    expect(tab.flow().events).toEqual([{ ...published, consumers: { worker: 'processed' } }]);
  });

  test('shows the newest 50 events of the last minute, newest first, when it is opened', async () => {
    const { open, clock, outbox, happened } = liveRig();
    const ids: string[] = [];
    for (let n = 0; n < 60; n += 1) {
      const [event] = await outbox.commit({ events: [happened(n)] });
      ids.push(event?.eventId ?? '');
      await clock.advance(100);
    }
    const tab = open();
    await clock.advance(0);
    expect(tab.flow().events.map(({ eventId }) => eventId)).toEqual(ids.slice(-50).reverse());
  });

  test('shows the newest 50 events of the last 6 hours if the last minute had fewer, each once', async () => {
    const { open, clock, outbox, happened, publish, drain, toMidMinute } = liveRig();
    const ids: string[] = [];
    const commit = async (count: number) => {
      for (let n = 0; n < count; n += 1) {
        const [event] = await outbox.commit({ events: [happened(n)] });
        ids.push(event?.eventId ?? '');
        await clock.advance(100);
      }
    };
    await commit(40);
    await publish();
    await drain();
    await clock.advance(4 * 3_600_000);
    await commit(20);
    await toMidMinute();
    // The feed begins in the middle of the minute of this one.
    await commit(1);
    await clock.advance(58_000);
    const tab = open();
    await clock.advance(0);
    const { events, eventsSince, at } = tab.flow();
    expect(events.map(({ eventId }) => eventId)).toEqual(ids.slice(-50).reverse());
    expect(events.at(-1)).toMatchObject({ status: 'PUBLISHED', consumers: { worker: 'processed' } });
    expect(at - (eventsSince ?? 0)).toBeGreaterThan(4 * 3_600_000);
    expect(tab.flow().committedPerS.reduce((sum, rate) => sum + rate, 0)).toBe(0.5);
  });

  test('says how far back it searched if there is no event, and shows no older one', async () => {
    const { open, clock, outbox, happened } = liveRig();
    await outbox.commit({ events: [happened(1)] });
    await clock.advance(6 * 3_600_000 + 120_000);
    const tab = open();
    expect(tab.flow().eventsSince).toBeNull();
    await clock.advance(0);
    const { events, eventsSince, at } = tab.flow();
    expect(events).toEqual([]);
    expect(at - (eventsSince ?? 0)).toBeGreaterThanOrEqual(6 * 3_600_000);
    await outbox.commit({ events: [happened(2)] });
    await clock.advance(2_000);
    expect(tab.flow()).toMatchObject({ events: [{ status: 'PENDING' }], eventsSince });
  });

  test('counts the events committed and the messages processed per second', async () => {
    const { open, clock, outbox, happened, publish, drain } = liveRig();
    const tab = open();
    await clock.advance(2_000 - (clock.now() % 2_000));
    for (let n = 0; n < 6; n += 1) await outbox.commit({ events: [happened(n)] });
    await clock.advance(4_000);
    const { committedPerS, processedPerS } = tab.flow();
    expect(committedPerS).toHaveLength(30);
    expect(committedPerS.slice(-2)).toEqual([3, 0]);
    expect(committedPerS.reduce((sum, rate) => sum + rate, 0)).toBe(3);
    expect(processedPerS).toEqual({ worker: Array(30).fill(0) });

    await publish();
    await clock.advance(2_000);
    await drain();
    await clock.advance(4_000);
    const later = tab.flow();
    expect(later.committedPerS).toEqual(Array(30).fill(0));
    expect(later.processedPerS.worker?.reduce((sum, rate) => sum + rate, 0)).toBe(3);
    await clock.advance(60_000);
    expect(tab.flow().processedPerS.worker).toEqual(Array(30).fill(0));
  });

  test('counts an event whose commit became visible 5 seconds late, once', async () => {
    const { open, clock, outbox, happened, memory, rows } = liveRig();
    const tab = open();
    await clock.advance(2_000);
    const [late] = await outbox.commit({ events: [happened(1)] });
    const [row] = rows();
    if (row === undefined) throw new Error('No row');
    await memory.write({ Delete: { Key: { PK: row.PK, SK: row.SK } } });
    await clock.advance(4_000);
    await memory.write({ Put: { Item: { ...row } } });
    await clock.advance(4_000);
    expect(tab.flow().events.map(({ eventId }) => eventId)).toEqual([late?.eventId]);
    expect(tab.flow().committedPerS.reduce((sum, rate) => sum + rate, 0)).toBe(0.5);
  });

  test('is a sample only above 100 events a second', async () => {
    const { open, clock, outbox, happened, toMidMinute } = liveRig();
    await toMidMinute();
    const tab = open();
    await clock.advance(2_000);
    const commit = async (perS: number, seconds: number) => {
      for (let tenth = 0; tenth < seconds * 10; tenth += 1) {
        const events = Array.from({ length: perS / 10 }, (_, n) => happened(n));
        await outbox.commit({ events });
        await clock.advance(100);
      }
    };
    await commit(100, 8);
    expect(tab.flow()).toMatchObject({ isSample: false });
    expect(Math.max(...tab.flow().committedPerS)).toBe(100);
    await commit(250, 5);
    expect(tab.flow()).toMatchObject({ isSample: true });
    expect(tab.flow().events).toHaveLength(50);
    await clock.advance(70_000);
    expect(tab.flow()).toMatchObject({ isSample: false });
  });

  test('shows the direction of a queue over the last minute', async () => {
    const { open, clock, queue } = liveRig();
    const tab = open();
    const trend = () => tab.flow().queues.worker;
    await clock.advance(0);
    expect(trend()).toEqual({ queued: 0, inFlight: 0, trend: 'level' });
    queue.send('{}');
    queue.send('{}');
    await clock.advance(5_000);
    expect(trend()).toEqual({ queued: 2, inFlight: 0, trend: 'rising' });
    await clock.advance(65_000);
    expect(trend()).toEqual({ queued: 2, inFlight: 0, trend: 'level' });
    await queue.deliver(async () => ({ batchItemFailures: [] }), 10);
    await clock.advance(5_000);
    expect(trend()).toEqual({ queued: 0, inFlight: 0, trend: 'falling' });
  });

  test('reads rows only of messages that are not finished', async () => {
    const { open, clock, outbox, happened, publish, drain, take } = liveRig();
    const tab = open();
    await outbox.commit({ events: [happened(1)] });
    await publish();
    await drain();
    await clock.advance(2_000);
    expect(tab.flow().events).toMatchObject([{ consumers: { worker: 'processed' } }]);
    take();
    await clock.advance(20_000);
    expect(take().states).toBe(0);
  });
});

describe('a part that cannot be read', () => {
  test('is named with the remedy, and the rest goes on', async () => {
    const { open, clock, faults, outbox, happened } = liveRig();
    faults.set('states', denied('dynamodb:BatchGetItem'));
    const tab = open();
    await outbox.commit({ events: [happened(1)] });
    await clock.advance(10_000);
    const flow = tab.flow();
    expect(flow.unread).toEqual([
      {
        part: 'states of messages',
        message:
          'User: ada is not authorized to perform: dynamodb:BatchGetItem. These credentials lack a permission. ' +
          'docs/cli.md#permissions lists what each command needs.',
      },
    ]);
    expect(flow).toMatchObject({ events: [], status: { state: 'ok' }, queues: { worker: { queued: 0 } } });
    expect(flow.committedPerS.some((rate) => rate > 0)).toBe(true);

    faults.clear();
    await clock.advance(60_000);
    expect(tab.flow()).toMatchObject({ unread: [], events: [{ status: 'PENDING' }] });
  });

  test('leaves the depth of its queue unknown, and the last status in place', async () => {
    const { open, clock, faults } = liveRig();
    const tab = open();
    await clock.advance(1_000);
    const at = tab.flow().status?.at;
    faults.set('depth', Object.assign(new Error('Rate exceeded'), { name: 'ThrottlingException' }));
    await clock.advance(20_000);
    expect(tab.flow()).toMatchObject({ queues: { worker: null }, status: { state: 'ok', at } });
    expect(tab.flow().unread).toEqual([
      { part: 'queue of worker, status', message: 'Rate exceeded. It is read again within a minute.' },
    ]);
  });

  test('is read less and less often, down to once a minute, and at once after refresh', async () => {
    const { open, clock, faults, take, live } = liveRig();
    faults.set('outbox', denied('dynamodb:Query'));
    open();
    await clock.advance(300_000);
    take();
    await clock.advance(300_000);
    // Two shards of at most two minutes, which are read together until one cannot be read.
    expect(take().outbox).toBeLessThanOrEqual(3 * 6);
    live.refresh();
    await clock.advance(0);
    expect(take().outbox).toBeGreaterThan(0);
  });

  test('says once that the credentials have expired', async () => {
    const { open, clock, faults } = liveRig();
    const expired = Object.assign(new Error('The security token included in the request is expired'), {
      name: 'ExpiredTokenException',
    });
    for (const kind of ['outbox', 'sweep', 'depth'] as const) faults.set(kind, expired);
    const tab = open();
    await clock.advance(10_000);
    expect(tab.flow().unread).toEqual([
      {
        part: expect.stringMatching(/new events.*status/),
        message: expect.stringContaining('The AWS credentials have expired. Log in again.'),
      },
    ]);
  });
});

describe('announcements', () => {
  const run = (id: string, progress: string): LiveMessage => ({
    kind: 'run',
    run: { id, progress, state: 'running' } as Run,
  });

  test('reach every tab, and the latest of each run a new one', async () => {
    const { open, live } = liveRig();
    const first = open();
    live.announce(run('a', 'Step 1 of 3'));
    live.announce(run('b', 'Step 1 of 1'));
    live.announce(run('a', 'Step 2 of 3'));
    const progress = (messages: readonly LiveMessage[]) =>
      messages.flatMap((message) => (message.kind === 'run' ? [[message.run.id, message.run.progress]] : []));
    expect(progress(first.messages)).toEqual([
      ['a', 'Step 1 of 3'],
      ['b', 'Step 1 of 1'],
      ['a', 'Step 2 of 3'],
    ]);
    const second = open();
    expect(second.messages[0]).toMatchObject({ kind: 'flow', flow: { status: null } });
    expect(progress(second.messages)).toEqual([
      ['a', 'Step 2 of 3'],
      ['b', 'Step 1 of 1'],
    ]);
  });

  test('announcements of the demo are kept for a new tab', () => {
    const { open, live } = liveRig();
    const demo = {
      faults: [],
      phase: 'ordering',
      placed: 3,
      orders: 10,
      endsAt: null,
      receipt: null,
    } as const;
    live.announce({ kind: 'demo', demo });
    expect(open().messages.at(-1)).toEqual({ kind: 'demo', demo });
  });
});

test('an event whose row was deleted is shown as unreadable', async () => {
  const { open, clock, outbox, happened, memory } = liveRig();
  const tab = open();
  const [event] = await outbox.commit({ events: [happened(1)] });
  await clock.advance(2_000);
  const { PK, SK } = outboxKeyOf(event?.eventId ?? '');
  await memory.write({ Delete: { Key: { PK, SK } } });
  await clock.advance(4_000);
  expect(tab.flow().events).toMatchObject([{ eventId: event?.eventId, status: 'UNREADABLE' }]);
});
