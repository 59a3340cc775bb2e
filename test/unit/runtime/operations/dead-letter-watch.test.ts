import { expect, test } from 'vitest';
import { DAY_MS } from '../../../../lambdas/runtime/base/units.ts';
import { createDeadLetterWatch } from '../../../../lambdas/runtime/operations/dead-letter-watch.ts';
import type { ConsumerEntry, Directory } from '../../../../lambdas/runtime/operations/directory.ts';
import type { QueueMessage, Queues } from '../../../../lambdas/runtime/operations/queues.ts';
import type { RejectedPointer } from '../../../../lambdas/runtime/store/inbox-row.ts';
import { rejectedKey } from '../../../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../../../lambdas/runtime/store/row-schema.ts';
import { manualClock, memoryTable, memoryTelemetry } from '../../../../testing/index.ts';
import { runThrough } from '../../../support/runtime-rig.ts';

/** What a queue of the test holds: dead letters that a receive returns, and hidden ones. */
interface Contents {
  readonly sentAt?: readonly number[];
  readonly hidden?: number;
  readonly retentionMs?: number;
}

const consumer = (name: string) =>
  ({ name, deadLetterQueue: `${name}-dead`, undeliveredQueue: `${name}-undelivered` }) as ConsumerEntry;

const directory = {
  mailroom: { failureQueue: 'stream-failures' },
  consumers: [consumer('payments'), consumer('inventory')],
} as unknown as Directory;

/** A watch over a stream failure queue and the queues of two consumers, of which each holds nothing unless said. */
function rig(contents: Readonly<Record<string, Contents>> = {}) {
  const clock = manualClock();
  const table = memoryTable({ clock });
  const telemetry = memoryTelemetry();
  const asked: string[] = [];
  const queues: Pick<Queues, 'depth' | 'receive'> = {
    depth: async (url) => {
      asked.push(`depth ${url}`);
      const { sentAt = [], hidden = 0, retentionMs = 14 * DAY_MS } = contents[url] ?? {};
      return { arn: url, waiting: sentAt.length, inFlight: hidden, retentionMs };
    },
    receive: async (url, options) => {
      asked.push(`receive ${url} ${JSON.stringify(options)}`);
      return (contents[url]?.sentAt ?? []).map((sentAt) => ({ sentAt }) as QueueMessage);
    },
  };
  return {
    clock,
    telemetry,
    asked,
    queues,
    reject: async (name: string, eventId: string, sentAt: number | undefined) => {
      const pointer = { ...rejectedKey(name, eventId), schema: SCHEMA, sentAt } as RejectedPointer;
      await table.write({ Put: { Item: { ...pointer } } });
    },
    look: (deps: Partial<Parameters<typeof createDeadLetterWatch>[0]> = {}, msLeft = 60_000) => {
      const watch = createDeadLetterWatch({
        directory: async () => directory,
        queues,
        table,
        clock,
        ...deps,
      });
      return runThrough(clock, watch(telemetry, clock.now() + msLeft));
    },
    letters: () => telemetry.counted('DeadLetters'),
    expiries: () => telemetry.durations('FirstDeadLetterExpiry'),
    failures: () => telemetry.counted('WatchFailures'),
  };
}

const NOW = manualClock().now();

test("without a dead letter it reports none, and SQS's longest retention", async () => {
  const { look, telemetry, asked, expiries } = rig();
  await look();
  expect(telemetry.counted('DeadLetters')).toBe(0);
  expect(expiries()).toEqual([14 * DAY_MS]);
  expect(telemetry.lines()).toEqual([]);
  expect(asked).toEqual([
    'depth stream-failures',
    'depth payments-undelivered',
    'depth payments-dead',
    'depth inventory-undelivered',
    'depth inventory-dead',
  ]);
});

test('dead letters of every source are counted, including hidden ones, and none is hidden by it', async () => {
  const { look, letters, asked, telemetry, failures } = rig({
    'stream-failures': { sentAt: [NOW] },
    'payments-undelivered': { sentAt: [NOW, NOW] },
    'inventory-dead': { sentAt: [NOW], hidden: 3 },
  });
  await look();
  expect(letters()).toBe(7);
  expect(failures()).toBe(0);
  const received = asked.filter((what) => what.startsWith('receive'));
  expect(received).toEqual([
    'receive stream-failures {"limit":10,"hideS":0}',
    'receive payments-undelivered {"limit":10,"hideS":0}',
    'receive inventory-dead {"limit":10,"hideS":0}',
  ]);
  expect(telemetry.lines()).toMatchObject([
    { level: 'warn', extra: { queues: { stream: 1, 'rule:payments': 2, 'consumer:inventory': 4 } } },
  ]);
});

test('the first dead letter expires one retention of its own queue after its original send', async () => {
  const { look, expiries } = rig({
    'payments-dead': { sentAt: [NOW - DAY_MS, NOW - 3 * DAY_MS] },
    'inventory-undelivered': { sentAt: [NOW - DAY_MS], retentionMs: 4 * DAY_MS },
  });
  await look();
  expect(expiries()).toEqual([3 * DAY_MS]);
});

test('a dead letter that SQS did not return is found by the pointer of its rejected message', async () => {
  const { look, expiries, reject } = rig({ 'payments-dead': { sentAt: [NOW], hidden: 1 } });
  await reject('payments', 'b', NOW - DAY_MS);
  await reject('payments', 'a', NOW - 13 * DAY_MS);
  await reject('payments', 'c', undefined); // written before it was known
  await look();
  expect(expiries()).toEqual([DAY_MS]);
});

test('a pointer without a dead letter raises no alarm', async () => {
  const { look, expiries, reject } = rig({ 'payments-dead': { sentAt: [NOW - 2 * DAY_MS] } });
  await reject('payments', 'a', NOW - 15 * DAY_MS); // deleted by now
  await reject('inventory', 'b', NOW - 13 * DAY_MS); // its queue is empty
  await look();
  expect(expiries()).toEqual([12 * DAY_MS]);
});

test('an overdue dead letter that is not deleted yet has zero time left, not less', async () => {
  const { look, expiries } = rig({ 'payments-dead': { sentAt: [NOW - 15 * DAY_MS] } });
  await look();
  expect(expiries()).toEqual([0]);
});

test('dead letters with an unknown send time are counted, without an expiry', async () => {
  const { look, letters, expiries } = rig({
    'stream-failures': { sentAt: [0] },
    'payments-dead': { hidden: 1 },
  });
  await look();
  expect(letters()).toBe(2);
  expect(expiries()).toEqual([14 * DAY_MS]);
});

test('a queue that cannot be read is counted and logged, and the others are read all the same', async () => {
  const { look, queues, letters, expiries, failures, telemetry } = rig({
    'payments-dead': { sentAt: [NOW - DAY_MS] },
  });
  await look({
    queues: {
      ...queues,
      depth: async (url) => {
        if (url.startsWith('inventory')) throw new Error('access denied');
        return queues.depth(url);
      },
    },
  });
  expect({ letters: letters(), expiries: expiries(), failures: failures() }).toEqual({
    letters: 1,
    expiries: [13 * DAY_MS],
    failures: 2,
  });
  const errors = telemetry.lines().filter(({ level }) => level === 'error');
  expect(errors).toMatchObject([
    { extra: { queue: 'rule:inventory', error: { message: 'access denied' } } },
    { extra: { queue: 'consumer:inventory' } },
  ]);
});

test('dead letters that may be counted but not read are counted, and the failure is reported', async () => {
  const { look, queues, letters, expiries, failures } = rig({ 'payments-dead': { sentAt: [NOW - DAY_MS] } });
  const denied = { ...queues, receive: async () => Promise.reject(new Error('kms:Decrypt denied')) };
  await look({ queues: denied });
  expect({ letters: letters(), failures: failures() }).toEqual({ letters: 1, failures: 1 });
  expect(expiries()).toEqual([14 * DAY_MS]);
});

test('without a directory, no figure is reported', async () => {
  const { look, failures, expiries, telemetry } = rig();
  telemetry.gauge('DeadLetters', -1); // as it was before
  await look({ directory: async () => Promise.reject(new Error('no such parameter')) });
  expect(failures()).toBe(1);
  expect(expiries()).toEqual([]);
  expect(telemetry.counted('DeadLetters')).toBe(-1);
});

test('a queue that hangs is skipped in time, and the other results are reported', async () => {
  const { look, queues, clock, failures, letters } = rig({ 'stream-failures': { sentAt: [NOW] } });
  const hanging = {
    ...queues,
    depth: (url: string) => (url === 'inventory-dead' ? new Promise<never>(() => {}) : queues.depth(url)),
  };
  await look({ queues: hanging });
  expect(clock.now() - NOW).toBeLessThan(10_000);
  expect({ failures: failures(), letters: letters() }).toEqual({ failures: 1, letters: 1 });
});

test.each([4_000, 500, 0])('it is over before an invocation that has %i ms left', async (msLeft) => {
  const { look, queues, clock, failures } = rig();
  const hanging = { ...queues, depth: () => new Promise<never>(() => {}) };
  await look({ queues: hanging }, msLeft);
  expect(clock.now() - NOW).toBeLessThanOrEqual(Math.max(msLeft, 50));
  expect(failures()).toBeGreaterThan(0);
});

test('a consumer whose directory entry was deleted counts as one that could not be read', async () => {
  const { look, telemetry } = rig();
  const unlisted = [{ name: 'orders', parameter: '/mailroom/table/inboxes/queue/0' }];
  await look({ directory: async () => ({ ...directory, unlisted }) });
  expect(telemetry.counted('WatchFailures')).toBe(1);
  expect(JSON.stringify(telemetry.lines())).toContain('consumer:orders');
});
