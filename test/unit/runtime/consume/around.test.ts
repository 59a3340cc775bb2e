import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, test } from 'vitest';
import { AlreadyProcessed, PoisonMessage, RetryLater } from '../../../../lambdas/runtime/base/errors.ts';
import type { Around, HandledRun } from '../../../../lambdas/runtime/consume/around.ts';
import { transactionalBatch } from '../../../../lambdas/runtime/consume/batch-handler.ts';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { HEARTBEAT } from '../../../../lambdas/runtime/events/heartbeat-event.ts';
import { createInboxProcessor } from '../../../../lambdas/runtime/sources/inbox-processor.ts';
import { createConsumer } from '../../../../lambdas/runtime/sources/sqs/consumer.ts';
import { consumerConfig, rig, runThrough, ThingHappened } from '../../../support/runtime-rig.ts';
import { closed, codes, handlerOf, inside, KINDS, turn } from './around-rig.ts';
import { envelope, inboxRow, send } from './consumer-rig.ts';

const PLAIN: Around = async (_, next) => {
  await next();
};
const RETURNED: Around = (_, next) => next();

describe.each([
  ['awaits next', PLAIN],
  ['returns next', RETURNED],
  [
    'returns something else',
    async (_: HandledRun, next: () => Promise<void>) => next().then(() => ({ writes: [] })),
  ],
  ['catches the failure', async (_: HandledRun, next: () => Promise<void>) => next().catch(() => {})],
  [
    'makes it poison',
    (_: HandledRun, next: () => Promise<void>) =>
      next().catch(() => {
        throw new PoisonMessage('no');
      }),
  ],
  [
    'says that it is processed',
    (_: HandledRun, next: () => Promise<void>) =>
      next().catch(() => {
        throw new AlreadyProcessed('no');
      }),
  ],
] as [string, Around][])(
  'a function around a handler that %s leaves the outcome to the handler',
  (_, around) => {
    const acts: [string, () => unknown][] = [
      ['succeeds', () => undefined],
      ['throws', closed],
      ['throws poison', () => Promise.reject(new PoisonMessage('never'))],
      ['asks to wait', () => Promise.reject(new RetryLater({ minutes: 2 }))],
      ['was processed elsewhere', () => Promise.reject(new AlreadyProcessed('by the job'))],
    ];
    test.each(KINDS.flatMap((kind) => acts.map(([what, act]) => [kind, what, act] as const)))(
      '%s, which %s',
      async (kind, _what, act) => {
        const alone = inside(undefined, [handlerOf(kind, [], act)]);
        await alone.deliver();
        const one = inside(around, [handlerOf(kind, [], act)]);
        await one.deliver();
        expect(one.end()).toEqual(alone.end());
        // Its second receive is under a claim.
        await Promise.all([alone, one].map(({ clock }) => clock.advance(150_000)));
        await Promise.all([alone, one].map(({ deliver }) => deliver()));
        expect(one.end()).toEqual(alone.end());
      },
    );
  },
);

describe.each(KINDS)('%s: the handler does not run, and the message fails,', (kind) => {
  test.each<[string, Around, string]>([
    ['without a call of next', async () => {}, 'BAD_AROUND'],
    ['after an error', async () => closed(), 'Error'],
    [
      'after AlreadyProcessed',
      async () => {
        throw new AlreadyProcessed('by me');
      },
      'BAD_AROUND',
    ],
    ['after an error that is undefined', () => Promise.reject(undefined), 'UNKNOWN'],
    ['with a call of next after its end', async (_run, next) => void setImmediate(next), 'BAD_AROUND'],
  ])('%s', async (_what, around, code) => {
    const runs: string[] = [];
    const one = inside(around, [handlerOf(kind, runs)]);
    const { deliver, end, clock } = one;
    await deliver();
    await clock.advance(150_000);
    await deliver();
    await turn();
    expect(runs).toEqual([]);
    expect(end()).toMatchObject({ status: 'FAILED', wrote: false, waits: 1 });
    expect(codes(one)).toContain(code);
  });

  test('after poison: it is rejected', async () => {
    const runs: string[] = [];
    const { deliver, end } = inside(
      () => Promise.reject(new PoisonMessage('no such tenant')),
      [handlerOf(kind, runs)],
    );
    await deliver();
    expect(runs).toEqual([]);
    expect(end()).toMatchObject({ status: 'REJECTED', reason: 'POISON_MESSAGE', wrote: false });
  });
});

const tenants = new AsyncLocalStorage<string>();

test.each(KINDS)('%s: the handler runs in the context in which next is called', async (kind) => {
  const seen: unknown[] = [];
  const act = async () => {
    await turn();
    seen.push(tenants.getStore());
  };
  const around: Around = ({ events: [{ eventId }] }, next) => tenants.run(eventId, next);
  const { deliver, event } = inside(around, [handlerOf(kind, [], act)]);
  await deliver();
  expect(seen).toEqual([event.eventId]);
});

test('the function gets frozen copies of the events, and the log fields', async () => {
  const runs: HandledRun[] = [];
  const handled: object[] = [];
  const around: Around = (run, next) => {
    runs.push(run);
    expect(() => Object.assign(run.events[0], { eventId: 'other' })).toThrow(TypeError);
    return next();
  };
  const { deliver, event } = inside(around, [
    leased(ThingHappened, async (received) => void handled.push(received)),
  ]);
  await deliver();
  expect(runs).toHaveLength(1);
  expect(runs[0]?.events).toEqual(handled);
  expect(runs[0]?.events[0]).toMatchObject({ eventId: event.eventId, data: { n: 1 } });
  expect(runs[0]?.logFields).toMatchObject({ consumer: 'worker', attempt: 1 });
  expect(runs[0]?.remainingMs()).toBeGreaterThan(0);
});

test('a batch handler runs in it once for its events, and only the one that it refuses is rejected', async () => {
  const batches: number[][] = [];
  const around: Around = ({ events }, next) => {
    const things = events.map(({ data }) => (data as { n: number }).n);
    batches.push(things);
    if (things.includes(2)) throw new PoisonMessage('2 has no tenant');
    return next();
  };
  const one = inside(around, [transactionalBatch(ThingHappened, async () => ({}))]);
  const others = [2, 3].map((n) => send(one, { data: { n } }));
  await one.deliver();
  expect(batches[0]?.toSorted()).toEqual([1, 2, 3]);
  const rows = [one.event, ...others].map((event) => inboxRow(one, event)?.status);
  expect(rows).toEqual(['PROCESSED', 'REJECTED', 'PROCESSED']);
});

test('a heartbeat is acknowledged outside it', async () => {
  const one = inside(() => closed(), []);
  const beat = envelope(one, { type: HEARTBEAT.type, version: 1, data: {} });
  one.queue.receive();
  one.queue.send({ source: HEARTBEAT.source, 'detail-type': HEARTBEAT.type, detail: beat });
  await one.deliver();
  expect(inboxRow(one, beat)?.status).toBe('PROCESSED');
});

test('a message of another source runs in it', async () => {
  const { clock, table, telemetry } = rig();
  const seen: string[] = [];
  const around: Around = async ({ events: [{ type }] }, next) => {
    seen.push(type);
    await next();
  };
  const inbox = createInboxProcessor({ config: consumerConfig, table, clock, telemetry, around });
  const detail = envelope({ clock } as never);
  const message = {
    id: 'things/0/1',
    body: JSON.stringify({ source: 'things', 'detail-type': detail.type, detail }),
  };
  const answer = await runThrough(
    clock,
    inbox.process(
      message,
      leased(ThingHappened, async () => {}),
    ),
  );
  expect([answer.kind, seen]).toEqual(['done', ['ThingHappened']]);
});

test.each([
  [{}, 'object'],
  [null, 'null'],
  ['trace', 'string'],
])('%j instead of a function is refused by its name', (around, type) => {
  const { table, queue, clock } = rig();
  const deps = { config: consumerConfig, table, queue, clock, handlers: [], around: around as never };
  for (const create of [createConsumer, createInboxProcessor])
    expect(() => create(deps)).toThrow(
      expect.objectContaining({
        code: 'BAD_CONSUMER',
        message: expect.stringContaining(`around is of type ${type}`),
      }),
    );
});
