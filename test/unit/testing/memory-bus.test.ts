import { describe, expect, it } from 'vitest';
import type { BusEntry } from '../../../lambdas/runtime/bus/event-bus.ts';
import { manualClock, memoryBus, memoryQueue } from '../../../testing/index.ts';

const entry = (detailType: string): BusEntry => ({ source: 'shop', detailType, detail: '{"n":1}' });

describe('the bus in memory', () => {
  it('routes by source and type, in the form of an SQS target', async () => {
    const clock = manualClock(Date.UTC(2026, 10, 21, 1, 9, 0, 123));
    const bus = memoryBus({ clock });
    const [all, placed, external] = [memoryQueue(), memoryQueue(), memoryQueue()];
    bus.routeTo(all);
    bus.routeTo(placed, { source: ['shop'], detailType: ['OrderPlaced'] });
    bus.routeTo(external, { source: ['other'] });
    await bus.put([entry('OrderPlaced'), entry('OrderPaid')], 1_000);
    expect(all.messages()).toHaveLength(2);
    expect(external.messages()).toHaveLength(0);
    expect(placed.messages().map(({ body }) => JSON.parse(body))).toEqual([
      {
        version: '0',
        id: bus.published()[0]?.id,
        'detail-type': 'OrderPlaced',
        source: 'shop',
        account: '000000000000',
        time: '2026-11-21T01:09:00Z',
        region: 'us-east-1',
        resources: [],
        detail: { n: 1 },
      },
    ]);
  });

  it('fails single entries on demand', async () => {
    const bus = memoryBus({
      failEntry: ({ detailType }, call) =>
        detailType === 'Bad' && call.number === 1
          ? { code: 'InternalFailure', message: 'try again' }
          : undefined,
    });
    expect(await bus.put([entry('Good'), entry('Bad')], 1_000)).toMatchObject([
      { ok: true },
      { ok: false, code: 'InternalFailure', message: 'try again' },
    ]);
    expect(await bus.put([entry('Bad')], 1_000)).toMatchObject([{ ok: true }]);
    expect(bus.published().map(({ detailType }) => detailType)).toEqual(['Good', 'Bad']);
  });

  it('fails whole calls on demand, before or after their effect', async () => {
    const error = new Error('no answer');
    const bus = memoryBus({
      failCall: ({ number }) => (number > 2 ? undefined : { error, published: number === 2 }),
    });
    await expect(bus.put([entry('A')], 1_000)).rejects.toBe(error);
    expect(bus.published()).toHaveLength(0);
    await expect(bus.put([entry('A')], 1_000)).rejects.toBe(error);
    expect(bus.published()).toHaveLength(1);
    await bus.put([entry('A')], 2_000);
    const ids = bus.published().map(({ id }) => id);
    expect(new Set(ids).size).toBe(2);
    expect(bus.calls().map(({ number, timeoutMs }) => [number, timeoutMs])).toEqual([
      [1, 1_000],
      [2, 1_000],
      [3, 2_000],
    ]);
  });
});
