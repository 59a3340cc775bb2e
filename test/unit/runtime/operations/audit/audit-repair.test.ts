import { describe, expect, test } from 'vitest';
import { MINUTE_MS } from '../../../../../lambdas/runtime/base/units.ts';
import { planRepair } from '../../../../../lambdas/runtime/operations/audit/audit-repair.ts';
import { outboxKeyOf } from '../../../../../lambdas/runtime/store/event-id.ts';
import { auditRig, consumerEntry } from './audit-rig.ts';

const LONG_AGO = 20 * MINUTE_MS;

describe('a repair', () => {
  test.each([
    ['text', { total: 1 }],
    ['compressed', { note: 'ä😀'.repeat(500) }],
  ])(
    'sends missing events, stored as %s, only to the consumer that never received them, as the bus would have',
    async (_how, data) => {
      const rig = auditRig();
      const event = await rig.event(LONG_AGO, {}, { data });
      await rig.inbox('inventory', event.eventId);
      const { sent, unsent } = await rig.repair(await rig.run());
      expect(sent.map(({ eventId, consumer }) => ({ eventId, consumer }))).toEqual([
        { eventId: event.eventId, consumer: 'payments' },
      ]);
      expect(unsent).toEqual([]);
      expect(rig.queues.sent).toEqual([{ url: 'payments-queue', body: expect.any(String) }]);
      expect(JSON.parse(rig.queues.sent[0]?.body ?? '')).toEqual({
        version: '0',
        id: expect.any(String),
        'detail-type': 'OrderPlaced',
        source: 'orders',
        account: '123456789012',
        time: '2026-01-01T11:40:00Z',
        region: 'eu-west-1',
        resources: [],
        detail: event,
      });
    },
  );

  test('is not missing again while it waits in the queue of a consumer that is down', async () => {
    const rig = auditRig([consumerEntry('payments')]);
    await rig.event(LONG_AGO);
    const report = await rig.run();
    await rig.clock.advance(MINUTE_MS);
    const resentAt = rig.clock.now();
    expect((await rig.repair(report)).sent).toHaveLength(1);
    rig.queues.holds.set('payments-queue', 1);
    rig.ages.set('payments-queue', rig.clock.now());
    await rig.clock.advance(10 * MINUTE_MS);
    const again = await rig.run();
    expect(again.consumers.payments).toMatchObject({ inconclusive: 1, missing: 0 });
    // Purged with all others, it is missing after all.
    rig.queues.holds.clear();
    const purged = await rig.run();
    expect(purged.missing).toEqual(report.missing.map((event) => ({ ...event, resentAt })));
  });

  test('that is lost, too, makes its event missing again, with the time of the repair', async () => {
    const rig = auditRig([consumerEntry('payments')]);
    await rig.event(LONG_AGO);
    expect((await rig.run()).missing).toMatchObject([{ resentAt: null }]);
    await rig.repair(await rig.run());
    const resentAt = rig.clock.now();
    await rig.clock.advance(LONG_AGO);
    expect((await rig.run()).missing).toMatchObject([{ resentAt }]);
  });

  test('is written down, by consumer, before it is made', async () => {
    const rig = auditRig();
    const { eventId } = await rig.event(LONG_AGO);
    const report = await rig.run();
    rig.queues.send = async () => {
      throw new Error('SQS is down');
    };
    await expect(rig.repair(report)).rejects.toThrow('SQS is down');
    const { items } = await rig.table.query({ pk: 'OPERATIONS#2026-01' });
    const note = { by: 'ada', reason: 'a test', command: 'audit --repair' };
    expect(items.toSorted((a, b) => (String(a.subject) < String(b.subject) ? 1 : -1))).toMatchObject([
      { ...note, subject: `payments: 1 missing event, ${eventId}` },
      { ...note, subject: `inventory: 1 missing event, ${eventId}` },
    ]);
  });

  test('that fails for one event sends the others, and reports both', async () => {
    const rig = auditRig();
    const [first, second] = [await rig.event(LONG_AGO), await rig.event(LONG_AGO)];
    const report = await rig.run();
    const { send } = rig.queues;
    rig.queues.send = async (url, body) => {
      if (body.includes(first.eventId)) throw Object.assign(new Error('Slow down'), { name: 'Throttled' });
      return send(url, body);
    };
    const why = 'it could not be sent: Throttled: Slow down';
    expect(await rig.repair(report)).toMatchObject({
      sent: [
        { consumer: 'payments', eventId: second.eventId },
        { consumer: 'inventory', eventId: second.eventId },
      ],
      unsent: [
        { consumer: 'payments', eventId: first.eventId, why },
        { consumer: 'inventory', eventId: first.eventId, why },
      ],
    });
  });

  test('of a consumer whose queue cannot be read sends the events of the others, and reports both', async () => {
    const rig = auditRig();
    const { eventId } = await rig.event(LONG_AGO);
    const report = await rig.run();
    const { missing } = report;
    const { depth } = rig.queues;
    rig.queues.depth = async (url) => {
      if (url === 'payments-queue') throw Object.assign(new Error('No access'), { name: 'AccessDenied' });
      return depth(url);
    };
    const planned = await planRepair(rig.deps, missing);
    const read = 'it could not be read: AccessDenied: No access';
    expect(planned).toMatchObject({
      toSend: [{ consumer: 'inventory', eventId }],
      unsent: [{ consumer: 'payments', eventId, why: read }],
    });
    const sent = 'it could not be sent: AccessDenied: No access';
    expect(await rig.repair(report)).toMatchObject({
      sent: [{ consumer: 'inventory', eventId }],
      unsent: [{ consumer: 'payments', eventId, why: sent }],
    });
  });

  test('is planned without a change: what can be sent, and what cannot and why', async () => {
    const rig = auditRig();
    const event = await rig.event(LONG_AGO);
    rig.queues.gone.add('inventory-queue');
    const before = await rig.table.get(outboxKeyOf(event.eventId));
    const { toSend, unsent } = await planRepair(rig.deps, (await rig.run()).missing);
    expect(toSend).toMatchObject([{ eventId: event.eventId, consumer: 'payments' }]);
    expect(unsent).toMatchObject([
      { eventId: event.eventId, consumer: 'inventory', why: expect.stringContaining('does not exist') },
    ]);
    expect(rig.queues.sent).toEqual([]);
    expect(await rig.table.get(outboxKeyOf(event.eventId))).toEqual(before);
    expect((await rig.table.query({ pk: 'OPERATIONS#2026-01' })).items).toEqual([]);
  });

  test('leaves an event whose row cannot be read, with the reason', async () => {
    const rig = auditRig([consumerEntry('payments')]);
    const { eventId } = await rig.event(LONG_AGO);
    const report = await rig.run();
    const key = outboxKeyOf(eventId);
    await rig.table.updateEach([{ key, set: { encoding: 'zstd' }, when: { status: 'PUBLISHED' } }]);
    const { sent, unsent } = await rig.repair(report);
    expect(sent).toEqual([]);
    expect(unsent).toMatchObject([
      {
        why: 'its outbox row cannot be read: its "encoding" is "zstd", and this version reads deflate-raw',
      },
    ]);
    expect(await rig.table.get(key)).not.toHaveProperty('resentAt');
  });

  test('leaves events that cannot be sent, with the reason', async () => {
    const rig = auditRig();
    const { eventId } = await rig.event(LONG_AGO);
    const report = await rig.run();
    await rig.table.write({ Delete: { Key: { ...outboxKeyOf(eventId) } } });
    rig.queues.gone.add('inventory-queue');
    const { sent, unsent } = await rig.repair(report);
    expect(sent).toEqual([]);
    expect(unsent.map(({ consumer, why }) => `${consumer}: ${why}`)).toEqual([
      'payments: its outbox row has expired, and its payload with it',
      'inventory: its queue does not exist; `npx cdk deploy mailroom-test --revert-drift` restores it',
    ]);
    expect(rig.queues.sent).toEqual([]);
  });
});
