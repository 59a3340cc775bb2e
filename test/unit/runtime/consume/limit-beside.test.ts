import { expect, test } from 'vitest';
import { type LeasedContext, leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { holderOf } from '../../../../lambdas/runtime/inbox/limit-places.ts';
import { createConsumer } from '../../../../lambdas/runtime/sources/sqs/consumer.ts';
import type { LimitRow } from '../../../../lambdas/runtime/store/inbox-row.ts';
import { limitKey } from '../../../../lambdas/runtime/store/keys.ts';
import { lambdaContext, memoryQueue } from '../../../../testing/index.ts';
import { consumerConfig, rig, runThrough, ThingHappened } from '../../../support/runtime-rig.ts';
import { inside } from './around-rig.ts';
import { awsError, body, consumer, inboxRow, type Parts, send } from './consumer-rig.ts';
import { LARGE, ReportMade, reports } from './payload-rig.ts';

const BUCKET = limitKey({ name: 'bank' }, 'm');
const bank = (concurrency: number) => ({ name: 'bank', key: () => 'm', concurrency });
const bucketOf = ({ memory }: Pick<Parts, 'memory'>) => memory.item(BUCKET) as Partial<LimitRow> | undefined;

/** Gives a place to a run elsewhere, which ends after this time, milliseconds. */
const hold = ({ memory, clock }: Pick<Parts, 'memory' | 'clock'>, ms: number) =>
  memory.write({
    Put: {
      Item: { ...BUCKET, schema: 1, concurrency: 1, holders: new Set([holderOf(clock.now() + ms, 'else')]) },
    },
  });

/** The runs of handlers on one clock. */
function runsOn({ clock }: Pick<Parts, 'clock'>) {
  const ran: string[] = [];
  let running = 0;
  let most = 0;
  return {
    ran,
    most: () => most,
    running: () => running,
    run: async (name: string, ms: number) => {
      ran.push(name);
      running += 1;
      most = Math.max(most, running);
      await clock.sleep(ms);
      running -= 1;
    },
  };
}

test('the function around a handler has the place of its run, which is freed if it throws', async () => {
  const held: unknown[] = [];
  const handler = leased(ThingHappened, async () => {}, { limit: bank(1) });
  const one = inside(
    async (_run, next) => {
      held.push(bucketOf(one)?.holders?.size);
      await next();
      held.push(bucketOf(one)?.holders?.size);
      throw new Error('closed');
    },
    [handler],
  );
  await one.deliver();
  expect(held).toEqual([1, 1]);
  expect(one.end()).toMatchObject({ status: 'FAILED', attempts: 1 });
  expect(bucketOf(one)).toMatchObject({ concurrency: 1 });
  expect(bucketOf(one)?.holders).toBeUndefined();
});

test('two consumers of one event share the places of a name: each runs, and never both at once', async () => {
  const parts = rig({ maxReceiveCount: 20 });
  const { clock, table, telemetry } = parts;
  const runs = runsOn(parts);
  const handlerOf = (name: string) =>
    leased(ThingHappened, async ({ eventId }) => runs.run(`${name} ${eventId}`, 3_000), { limit: bank(1) });
  const queues = [parts.queue, memoryQueue({ clock, visibilityTimeoutMs: 60_000, maxReceiveCount: 20 })];
  const handles = queues.map((queue, i) => {
    const config = { ...consumerConfig, consumer: `c${i}` };
    const handlers = [handlerOf(config.consumer)];
    return createConsumer({ config, table, queue, handlers, clock, telemetry });
  });
  const events = [send(parts), send(parts), send(parts)];
  for (const event of events) queues[1]?.send(body(event));
  const messages = () => queues.flatMap((queue) => queue.messages());
  for (let round = 0; round < 50 && messages().length > 0; round += 1) {
    const delivered = queues.map((queue, i) =>
      queue.deliver(handles[i] as never, 10, lambdaContext({ clock })),
    );
    await runThrough(clock, Promise.all(delivered));
    const next = Math.min(...messages().map(({ visibleAt }) => visibleAt));
    if (Number.isFinite(next)) await clock.advance(Math.max(1, next - clock.now()));
  }
  const all = events.flatMap(({ eventId }) => [`c0 ${eventId}`, `c1 ${eventId}`]);
  expect(runs.ran.toSorted()).toEqual(all.toSorted());
  expect(runs.most()).toBe(1);
});

test('an effect of an earlier attempt survives a wait for a place, and is not repeated', async () => {
  const parts = rig({ maxReceiveCount: 20 });
  let calls = 0;
  const handle = async (_event: unknown, ctx: LeasedContext) => {
    await ctx.once('charge', async () => {
      calls += 1;
      return { id: 7 };
    });
    if (ctx.attempt === 1) throw new Error('down');
  };
  const one = consumer(parts, [leased(ThingHappened, handle, { limit: bank(1), expiresInMs: 60_000 })]);
  const event = send(parts);
  await one.deliver();
  await hold(parts, 120_000);
  await parts.clock.advance(20_000);
  await one.deliver();
  expect(inboxRow(parts, event)).toMatchObject({
    status: 'FAILED',
    attempts: 1,
    effects: { charge: { status: 'COMPLETED' } },
    pastAttempts: [{ ended: 'failed' }, { ended: 'waited', attempt: 2 }],
  });
  await one.drain();
  // It is stale by now, but its work has begun.
  expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 2 });
  expect(calls).toBe(1);
});

test('a payload that cannot be read takes no place', async () => {
  let isDown = true;
  const made = reports({ failCall: (call) => (isDown && call === 'get' ? awsError('SlowDown') : undefined) });
  const { drain, deliver } = made.consumerOf(leased(ReportMade, async () => {}, { limit: bank(1) }));
  const [{ eventId = '' } = {}] = await made.commit(LARGE);
  await deliver();
  expect(made.queue.messages()).toHaveLength(1);
  expect(bucketOf(made)).toBeUndefined();
  isDown = false;
  await drain();
  expect(made.row(eventId)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
  expect(bucketOf(made)?.holders).toBeUndefined();
});

test('a lower concurrency counts the runs of the version before: none starts beside them', async () => {
  const parts = rig({ maxReceiveCount: 20 });
  const { clock, queue } = parts;
  const [before, after] = [runsOn(parts), runsOn(parts)];
  const beside: number[] = [];
  const old = leased(ThingHappened, () => before.run('old', 2_000 + 1_000 * before.ran.length), {
    limit: bank(3),
  });
  const next = leased(
    ThingHappened,
    async () => {
      beside.push(before.running());
      await after.run('next', 1_000);
    },
    { limit: bank(1) },
  );
  for (let n = 0; n < 3; n += 1) send(parts);
  const running = queue.deliver(consumer(parts, [old]).handle, 10, lambdaContext({ clock }));
  await clock.advance(1_500);
  expect(before.running()).toBe(3);
  for (let n = 0; n < 5; n += 1) send(parts);
  const deployed = consumer(parts, [next]);
  // It waits while the first two of the three end.
  await deployed.deliver();
  await deployed.drain(100);
  await runThrough(clock, running);
  expect(beside).toEqual([0, 0, 0, 0, 0]);
  expect(after.most()).toBe(1);
  expect(queue.messages()).toEqual([]);
});
