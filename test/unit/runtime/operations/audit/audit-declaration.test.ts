import { describe, expect, test } from 'vitest';
import { MINUTE_MS } from '../../../../../lambdas/runtime/base/units.ts';
import { declarationOf } from '../../../../../lambdas/runtime/operations/audit/audit-declaration.ts';
import type { ConsumerEntry, EntryVersion } from '../../../../../lambdas/runtime/operations/directory.ts';
import { dynamoOutboxRows } from '../../../../../lambdas/runtime/operations/outbox-rows.ts';
import { consumersOf, declaredSince } from '../../../../../lambdas/runtime/operations/subscribed-events.ts';
import { auditRig, consumerEntry } from './audit-rig.ts';

const LONG_AGO = 20 * MINUTE_MS;

describe('after a change of its consumer’s entry, an event without a row', () => {
  const at = (minutes: number) => Date.UTC(2026, 0, 1, 11, minutes);
  const version = (changedAt: number, more: Partial<ConsumerEntry> = {}): EntryVersion => ({
    value: JSON.stringify(consumerEntry('payments', more)),
    changedAt,
  });

  function changed(versions: readonly EntryVersion[]) {
    const [today] = versions.slice(-1);
    const entry = JSON.parse(today?.value ?? '') as ConsumerEntry;
    const rig = auditRig([{ ...entry, changedAt: today?.changedAt }]);
    rig.versions.set('payments', [...versions]);
    return rig;
  }

  test('is missing when it was declared before, too: another setting changed', async () => {
    const rig = changed([version(at(0), { maxAttempts: 3 }), version(at(45))]);
    await rig.event(LONG_AGO);
    expect((await rig.run()).consumers.payments).toMatchObject({ unproven: 0, missing: 1 });
  });

  test('is missing when its type was declared before, and unproven when its type is the new one', async () => {
    const events = ['OrderPlaced', 'OrderCancelled'].map((type) => ({ source: 'orders', type }));
    const rig = changed([version(at(0)), version(at(45), { events })]);
    const old = await rig.event(LONG_AGO);
    await rig.event(LONG_AGO, { type: 'OrderCancelled' });
    const late = await rig.event(10 * MINUTE_MS, { type: 'OrderCancelled' });
    const report = await rig.run();
    expect(report.consumers.payments).toMatchObject({ unproven: 1, missing: 2 });
    expect(report.missing.map(({ eventId }) => eventId).sort()).toEqual([old.eventId, late.eventId].sort());
  });

  test('is unproven when its source is the new one', async () => {
    const ofShop = { source: 'shop', type: 'OrderPlaced' };
    const ofOrders = { ...ofShop, source: 'orders' };
    const rig = changed([
      version(at(0), { events: [ofShop] }),
      version(at(45), { events: [ofShop, ofOrders] }),
    ]);
    await rig.event(LONG_AGO);
    expect((await rig.run()).consumers.payments).toMatchObject({ unproven: 1, missing: 0 });
  });

  test('is unproven when its type was taken out in between', async () => {
    const events = [{ source: 'orders', type: 'OrderCancelled' }];
    const rig = changed([version(at(0)), version(at(40), { events }), version(at(45))]);
    await rig.event(LONG_AGO);
    expect((await rig.run()).consumers.payments).toMatchObject({ unproven: 1, missing: 0 });
  });

  describe('whose filter changed', () => {
    const to = (...countries: string[]) => ({
      events: [{ source: 'orders', type: 'OrderPlaced', filter: { country: countries } }],
    });

    test('is missing if the earlier filter matched, too, and unproven if only the new one does', async () => {
      const rig = changed([version(at(0), to('CH')), version(at(45), to('CH', 'AT'))]);
      const old = await rig.event(LONG_AGO, {}, { data: { country: 'CH' } });
      await rig.event(LONG_AGO, {}, { data: { country: 'AT' } });
      const late = await rig.event(10 * MINUTE_MS, {}, { data: { country: 'AT' } });
      const report = await rig.run();
      expect(report.consumers.payments).toMatchObject({ expected: 3, unproven: 1, missing: 2 });
      expect(report.missing.map(({ eventId }) => eventId).sort()).toEqual([old.eventId, late.eventId].sort());
    });

    test('is missing if there was no filter before', async () => {
      const rig = changed([version(at(0)), version(at(45), to('CH'))]);
      await rig.event(LONG_AGO, {}, { data: { country: 'CH' } });
      expect((await rig.run()).consumers.payments).toMatchObject({ unproven: 0, missing: 1 });
    });

    test('is not expected if only the earlier filter matched', async () => {
      const rig = changed([version(at(0)), version(at(45), to('CH'))]);
      await rig.event(LONG_AGO, {}, { data: { country: 'AT' } });
      expect((await rig.run()).consumers.payments).toMatchObject({ expected: 0 });
    });
  });

  test('is unproven if earlier versions cannot be read, and is reported as such', async () => {
    const rig = changed([version(at(0)), version(at(45))]);
    rig.versions.clear();
    await rig.event(LONG_AGO);
    const report = await rig.run();
    expect(report.consumers.payments).toMatchObject({ unproven: 1, missing: 0 });
    expect(report.incomplete).toEqual([
      expect.stringMatching(
        /^The earlier versions of the directory entry of payments could not be read \(AccessDenied/,
      ),
    ]);
  });

  test('the versions are read only when they matter', async () => {
    const rig = changed([version(at(0)), version(at(5))]);
    rig.versions.clear();
    await rig.event(LONG_AGO);
    expect((await rig.run()).incomplete).toEqual([]);
  });
});

test('an entry in an unknown form declares nothing', () => {
  const event = { source: 'orders', type: 'OrderPlaced', data: () => ({}) };
  const good = JSON.stringify(consumerEntry('payments'));
  for (const value of ['no JSON', '5', 'null', '{}', '{"from":"orders","events":7}']) {
    expect(
      declaredSince(
        [
          { value: good, changedAt: 1 },
          { value, changedAt: 2 },
          { value: good, changedAt: 3 },
        ],
        event,
      ),
    ).toBe(3);
    expect(declaredSince([{ value, changedAt: 1 }], event)).toBeUndefined();
  }
  expect(declaredSince([], event)).toBeUndefined();
});

test('an event whose payload cannot be read is declared for every filter, but its loss is not proven by an earlier one', async () => {
  const rig = auditRig();
  const events = [{ source: 'orders', type: 'OrderPlaced', filter: { country: ['CH'] } }];
  const filtered = consumerEntry('payments', { events, changedAt: rig.clock.now() });
  const directory = { ...rig.directory, consumers: [filtered] };
  const event = { source: 'orders', type: 'OrderPlaced' };
  const names = (payload: unknown) =>
    consumersOf(directory, { ...event, data: () => payload }).map(({ name }) => name);
  expect([names(undefined), names({ country: 'CH' }), names({})]).toEqual([['payments'], ['payments'], []]);

  const published = { ...event, publishedAt: rig.clock.now() - LONG_AGO, resentAt: null, sentAt: 0 };
  const versions = async () => [{ value: JSON.stringify(filtered), changedAt: 0 }];
  const readable = {
    ...published,
    eventId: (await rig.event(LONG_AGO, {}, { data: { country: 'CH' } })).eventId,
  };
  const expired = {
    ...published,
    eventId: readable.eventId.replace(/.$/, (end) => (end === '0' ? '1' : '0')),
  };
  const declaration = await declarationOf(filtered, [readable, expired], {
    outbox: dynamoOutboxRows(rig.table),
    versions,
  });
  expect([await declaration.covers(readable), await declaration.covers(expired)]).toEqual([true, false]);
});
