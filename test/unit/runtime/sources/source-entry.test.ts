import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS } from '../../../../lambdas/runtime/base/units.ts';
import { readSourceConsumers } from '../../../../lambdas/runtime/operations/source-consumers.ts';
import { createInboxProcessor } from '../../../../lambdas/runtime/sources/inbox-processor.ts';
import { sourceConsumerKey } from '../../../../lambdas/runtime/store/keys.ts';
import type { Table } from '../../../../lambdas/runtime/store/table.ts';
import { consumerConfig, ThingHappened } from '../../../support/runtime-rig.ts';
import { counting, sourceRig } from './source-rig.ts';

const { consumer, service, maxAttempts, inboxRetentionDays } = consumerConfig;

describe('the entry of a consumer of another source', () => {
  test('is written when a loop begins, before any message, and names its source', async () => {
    const { inbox, memory, clock, idle } = sourceRig();
    const startedAt = clock.now();
    inbox.handles(counting().handler, 'Kafka');
    await idle();
    expect(await readSourceConsumers(memory, { consumers: [] }, clock.now())).toEqual([
      {
        ...{ name: consumer, service, maxAttempts, inboxRetentionDays, order: undefined },
        from: 'Kafka',
        events: [{ source: ThingHappened.source, type: ThingHappened.type }],
        seenAt: startedAt,
      },
    ]);
  });

  test('is renewed by the first message of each day', async () => {
    const { inbox, memory, clock, envelope, through } = sourceRig();
    const { handler } = counting();
    const seenAt = () => memory.item(sourceConsumerKey(consumer))?.seenAt;
    const receive = async (id: string) =>
      through(inbox.process({ id, body: JSON.stringify(await envelope()) }, handler));
    const first = clock.now();
    await receive('1');
    expect(seenAt()).toBe(first);
    await clock.advance(DAY_MS / 2);
    await receive('2');
    expect(seenAt()).toBe(first);
    await clock.advance(DAY_MS / 2);
    const renewedAt = clock.now();
    await receive('3');
    expect(seenAt()).toBe(renewedAt);
    expect(await readSourceConsumers(memory, { consumers: [] }, clock.now())).toMatchObject([
      { from: 'another source' },
    ]);
  });

  test('that cannot be written holds back no message, and is tried again in an hour', async () => {
    let denied = true;
    const parts = sourceRig({
      wrap: (real): Table => ({
        ...real,
        write: async (action) => {
          if (denied && action.Put?.Item?.SK === consumer)
            throw Object.assign(new Error('PutItem is denied'), { name: 'AccessDeniedException' });
          return real.write(action);
        },
      }),
    });
    const { handler, events } = counting();
    const receive = async (id: string) =>
      parts.through(parts.inbox.process({ id, body: JSON.stringify(await parts.envelope()) }, handler));
    expect(await receive('1')).toEqual({ kind: 'done' });
    denied = false;
    expect(await receive('2')).toEqual({ kind: 'done' });
    expect(parts.memory.item(sourceConsumerKey(consumer))).toBeUndefined();
    await parts.clock.advance(HOUR_MS);
    await receive('3');
    expect(parts.memory.item(sourceConsumerKey(consumer))).toBeDefined();
    expect(events).toHaveLength(3);
  });

  test('disappears a retention and a day after its consumer was last seen, and one in another form is left out', async () => {
    const { memory, clock, table, idle } = sourceRig();
    createInboxProcessor({ config: consumerConfig, table, clock }).handles(counting().handler, 'Kafka');
    await idle();
    const good = memory.item(sourceConsumerKey(consumer));
    for (const [index, changed] of [
      { service: 7 },
      { from: null },
      { events: 'none' },
      { events: [null] },
      { events: [{ source: 'things' }] },
      { seenAt: 'now' },
    ].entries())
      await memory.write({
        Put: { Item: { ...good, ...sourceConsumerKey(`strange-${index}`), ...changed } },
      });
    expect(await readSourceConsumers(memory, { consumers: [] }, clock.now())).toMatchObject([
      { name: consumer },
    ]);
    const gone = clock.now() + (inboxRetentionDays + 1) * DAY_MS;
    expect(await readSourceConsumers(memory, { consumers: [] }, gone)).toEqual([]);
    const moved = { consumers: [{ name: consumer }] } as never; // to a queue
    expect(await readSourceConsumers(memory, moved, clock.now())).toEqual([]);
  });
});
