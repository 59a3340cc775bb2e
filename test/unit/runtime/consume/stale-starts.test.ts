import { expect, test, vi } from 'vitest';
import { CLOCK_SKEW_MS } from '../../../../lambdas/runtime/base/clock.ts';
import { DAY_MS, HOUR_MS } from '../../../../lambdas/runtime/base/units.ts';
import { transactionalBatch } from '../../../../lambdas/runtime/consume/batch-handler.ts';
import { leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { mintEventId } from '../../../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../../../lambdas/runtime/store/keys.ts';
import { rig, startedLongAgo, ThingHappened } from '../../../support/runtime-rig.ts';
import { body, CONSUMER, consumer, inboxRow, type Parts, send } from './consumer-rig.ts';

/** The last time at which an attempt starts, after the commit. */
const LAST_MS = HOUR_MS + CLOCK_SKEW_MS;

const inTime = { expiresInMs: HOUR_MS };

test.each([
  ['leased', leased],
  ['transactional', transactional],
])('a message that an operator allowed is not stale, also when it is retried: %s', async (_kind, kind) => {
  const parts: Parts = rig();
  await startedLongAgo(parts.memory);
  const run = vi.fn(async () => ({}));
  const { deliver } = consumer(parts, [kind(ThingHappened, run, inTime)]);
  const event = send(parts, { eventId: mintEventId(parts.clock.now() - 40 * DAY_MS, 2) });
  await deliver();
  const rejected = inboxRow(parts, event);
  expect(rejected).toMatchObject({ status: 'REJECTED', reason: 'EVENT_TOO_OLD' });
  await parts.memory.write({
    Put: { Item: { ...rejected, ...inboxKey(CONSUMER, event.eventId), runAnyway: true } },
  });
  parts.queue.send(body(event));
  run.mockRejectedValueOnce(new Error('down'));
  await deliver();
  expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', attempts: 1 });
  await parts.clock.advance(HOUR_MS);
  await deliver();
  expect(run).toHaveBeenCalledTimes(2);
  expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
});

test('a half of a batch that has expired while the whole ran is discarded', async () => {
  const parts: Parts = rig();
  const starts: number[] = [];
  const handler = transactionalBatch(
    ThingHappened,
    async (events) => {
      starts.push(parts.clock.now());
      await parts.clock.sleep(10_000);
      if (events.length >= 4) throw new Error('too many');
      return {};
    },
    inTime,
  );
  const sent = Array.from({ length: 4 }, () => send(parts));
  await parts.clock.advance(LAST_MS);
  const last = parts.clock.now();
  await consumer(parts, [handler]).deliver();
  expect(starts).toEqual([last]);
  for (const event of sent)
    expect(inboxRow(parts, event)).toMatchObject({ status: 'DISCARDED', reason: 'STALE', attempts: 0 });
});

test('a message of a batch that has expired does not delay the others', async () => {
  const parts: Parts = rig();
  const handleBatch = vi.fn(async () => ({}));
  const old = send(parts);
  await parts.clock.advance(LAST_MS + 1);
  const young = [send(parts), send(parts)];
  await consumer(parts, [transactionalBatch(ThingHappened, handleBatch, inTime)]).deliver();
  expect(handleBatch).toHaveBeenCalledOnce();
  expect(inboxRow(parts, old)).toMatchObject({ status: 'DISCARDED' });
  for (const event of young) expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
});

test('a message that has expired while it waited for its token is discarded', async () => {
  const parts: Parts = rig();
  const starts: number[] = [];
  const limit = { key: () => 'bank', perSecond: 0.5 };
  const handler = leased(ThingHappened, async () => void starts.push(parts.clock.now()), {
    ...inTime,
    limit,
  });
  const sent = [send(parts), send(parts)];
  await parts.clock.advance(LAST_MS);
  const last = parts.clock.now();
  await consumer(parts, [handler]).deliver();
  expect(starts).toEqual([last]);
  const rows = sent.map((event) => inboxRow(parts, event));
  expect(rows.map((row) => row?.status).toSorted()).toEqual(['DISCARDED', 'PROCESSED']);
  expect(rows.find((row) => row?.status === 'DISCARDED')).toMatchObject({ reason: 'STALE', attempts: 0 });
});
