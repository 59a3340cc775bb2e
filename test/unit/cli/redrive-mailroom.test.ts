import { expect, test } from 'vitest';
import { PoisonMessage } from '../../../lambdas/runtime/base/errors.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import type { QueueMessage, Queues } from '../../../lambdas/runtime/operations/queues.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { operatingMailroom } from './support/operating-mailroom.ts';
import { type MemoryRun, runInMemory } from './support/run-in-memory.ts';

const REDRIVE = ['dlq', 'redrive', 'consumer:worker', '--apply', '--reason', 'the bank is back'];
const CAUSES = ['bank', 'price', 'stock', 'tax'] as const;
type Cause = (typeof CAUSES)[number];

/** 208 dead letters of four causes at a consumer with a side effect for each event, and a dead-letter queue that hides what it returns. */
async function manyLetters(count = 208, { hidesMs = 900_000 }: { readonly hidesMs?: number } = {}) {
  const broken = new Set<Cause>(CAUSES);
  /** The events whose customer the bank does not know. */
  const unknown = new Set<number>();
  const charged: string[] = [];
  const mailroom = operatingMailroom([
    leased(ThingHappened, async ({ eventId, data: { n } }, ctx) => {
      const cause = CAUSES[n % CAUSES.length] ?? 'tax';
      if (broken.has(cause)) throw new PoisonMessage(`the ${cause} is wrong`);
      if (unknown.has(n)) throw new PoisonMessage('the bank does not know the customer');
      await ctx.once('charge', async () => void charged.push(eventId));
    }),
  ]);
  const ids: string[] = [];
  for (let n = 0; n < count; n += 26) {
    const size = Math.min(26, count - n);
    const events = Array.from({ length: size }, (_, i) => mailroom.happened(n + i));
    ids.push(...(await mailroom.outbox.commit({ events })).map(({ eventId }) => eventId));
  }
  await mailroom.publish();
  while (mailroom.queue.messages().length > 0) await mailroom.drain();
  hiding(mailroom, hidesMs);
  return {
    ...mailroom,
    ids,
    broken,
    unknown,
    charged,
    statusOf: (eventId: string) => mailroom.memory.item(inboxKey('worker', eventId))?.status,
    redrive: (...options: readonly string[]) => runInMemory(mailroom, [...REDRIVE, ...options]),
    /** The events of the dead letters that are left once every message has settled. */
    settled: async () => {
      while (mailroom.queue.messages().length > 0) await mailroom.drain();
      return mailroom.lettersLeft();
    },
  };
}

/** Hides what is received, and deletes only with the latest receipt, as SQS does. */
function hiding(
  mailroom: ReturnType<typeof operatingMailroom> & { lettersLeft?: () => Promise<string[]> },
  hidesMs: number,
): asserts mailroom is ReturnType<typeof operatingMailroom> & { lettersLeft: () => Promise<string[]> } {
  const { clock } = mailroom;
  const plain = { ...mailroom.queues };
  const held = new Map<string, { receipt: number; until: number }>();
  let receipts = 0;
  const isLatest = ({ messageId, receiptHandle }: QueueMessage) =>
    held.get(messageId)?.receipt === Number(receiptHandle);
  const queues: Partial<Queues> = {
    receive: async (url, { limit }) => {
      const all = await plain.receive(url, { limit: Number.POSITIVE_INFINITY });
      const free = all.filter(({ messageId }) => (held.get(messageId)?.until ?? 0) <= clock.now());
      return free.slice(0, limit).map((message) => {
        receipts += 1;
        held.set(message.messageId, { receipt: receipts, until: clock.now() + hidesMs });
        return { ...message, receiptHandle: `${receipts}` };
      });
    },
    show: async (_url, message) => {
      if (isLatest(message)) held.delete(message.messageId);
    },
    remove: async (url, message) => {
      if (isLatest(message)) await plain.remove(url, message);
    },
  };
  Object.assign(mailroom.queues, queues);
  mailroom.lettersLeft = async () => {
    const left = await plain.receive('dead-letters', { limit: Number.POSITIVE_INFINITY });
    return left.map(({ body }) => String(JSON.parse(body).detail.eventId));
  };
}

interface Letter {
  readonly eventId: string;
  readonly outcome: string;
}

function documentOf({ out }: MemoryRun) {
  return JSON.parse(out) as {
    readonly processed: number;
    readonly causes: readonly Record<string, unknown>[];
    readonly deadLetters: readonly Letter[];
  };
}

test('one command processes what can run of 208 dead letters of four causes, two of them fixed, and ends with a table', async () => {
  const rig = await manyLetters();
  rig.broken.delete('bank');
  rig.broken.delete('stock');
  for (const n of [0, 4, 40, 42]) rig.unknown.add(n);
  const run = await rig.until(rig.redrive('--json'));
  expect(run.code).toBe(1);
  const { processed, causes } = documentOf(run);
  expect(processed).toBe(100);
  const again = 'worker POISON_MESSAGE: the bank does not know the customer';
  const of = (cause: Cause, outcome: string, count: number, more: object = {}) => ({
    ...{ outcome, failedAgain: null, notTried: null, count, example: expect.any(String) },
    ...{ fingerprint: `worker POISON_MESSAGE: the ${cause} is wrong`, ...more },
  });
  expect(causes).toHaveLength(8);
  expect(causes).toEqual(
    expect.arrayContaining([
      of('stock', 'processed', 51),
      of('bank', 'processed', 49),
      of('bank', 'failed-again', 3, { failedAgain: again }),
      of('price', 'failed-again', 1, { failedAgain: 'worker POISON_MESSAGE: the price is wrong' }),
      of('stock', 'failed-again', 1, { failedAgain: again }),
      of('tax', 'failed-again', 1, { failedAgain: 'worker POISON_MESSAGE: the tax is wrong' }),
      of('price', 'untried', 51, { notTried: 'failed-again' }),
      of('tax', 'untried', 51, { notTried: 'failed-again' }),
    ]),
  );
  expect(causes.map(({ outcome }) => outcome)).toEqual([
    ...['processed', 'processed', 'failed-again', 'failed-again', 'failed-again', 'failed-again'],
    ...['untried', 'untried'],
  ]);
  expect(rig.charged).toHaveLength(100);
  expect(await rig.settled()).toHaveLength(108);
}, 60_000);

test('the table of a redrive is followed by the command for each cause that failed again, which redrives it once it is fixed', async () => {
  const rig = await manyLetters(60);
  rig.broken.delete('bank');
  const { out } = await rig.until(rig.redrive());
  expect(unwrapped(out)).toContain('15 of 60 processed, 3 failed again, 42 not tried.');
  expect(unwrapped(out)).toContain('Its cause failed again, so it is not fixed');
  await rig.settled();
  rig.broken.clear();
  const line = /npx cdk-mailroom (dlq redrive consumer:worker --cause '([^']+)') --stage dev/.exec(
    unwrapped(out),
  );
  const cause = line?.[2] ?? '';
  const fixed = await rig.until(rig.redrive('--cause', cause, '--json'));
  expect(fixed.code).toBe(0);
  expect(documentOf(fixed).processed).toBe(15);
  const rest = await rig.until(rig.redrive('--json'));
  expect(documentOf(rest).processed).toBe(30);
  expect(rig.charged.toSorted()).toEqual(rig.ids.toSorted());
  expect(await rig.settled()).toEqual([]);
}, 60_000);

test('--keep-going tries each of them once', async () => {
  const rig = await manyLetters(60);
  rig.broken.delete('bank');
  const run = await rig.until(rig.redrive('--keep-going', '--json'));
  const outcomes = documentOf(run).deadLetters.map(({ outcome }) => outcome);
  expect([run.code, outcomes.filter((outcome) => outcome === 'failed-again').length]).toEqual([1, 45]);
  expect(rig.sent).toHaveLength(60);
  expect(await rig.settled()).toHaveLength(45);
}, 60_000);

test.each([3, 17, 30])(
  'a command that dies after %d sends leaves every event processed or in the source',
  async (sends) => {
    const rig = await manyLetters(60);
    rig.broken.delete('bank');
    rig.broken.delete('tax');
    const { send, remove } = rig.queues;
    const dies = () => new Promise<never>(() => {});
    Object.assign(rig.queues, {
      // The last send arrives, but its dead letter is not deleted.
      remove: (...words: Parameters<typeof remove>) => (rig.sent.length < sends ? remove(...words) : dies()),
    });
    void rig.redrive();
    await rig.until(waitFor(() => rig.sent.length >= sends, rig.clock));
    Object.assign(rig.queues, { send, remove });
    await rig.settled();
    await rig.clock.advance(900_000);
    rig.broken.clear();
    const again = await rig.until(rig.redrive('--json'));
    expect(again.code).toBe(0);
    expect(rig.charged.toSorted()).toEqual(rig.ids.toSorted());
    expect(await rig.settled()).toEqual([]);
  },
  60_000,
);

/** Waits in the time of the Mailroom. */
async function waitFor(condition: () => boolean, clock: { sleep(ms: number): Promise<void> }) {
  while (!condition()) await clock.sleep(100);
}

test.each([
  ['of which the first holds all', 900_000, 60, false],
  ['of halves of the queue', 900_000, 30, false],
  ['of which the second receives what the first still holds', 1_000, 60, true],
])(
  'two redrives at a time, %s, lose and double nothing, and both tables are true',
  async (_, hidesMs, limit, isShared) => {
    const rig = await manyLetters(60, { hidesMs });
    rig.broken.delete('bank');
    rig.broken.delete('price');
    rig.unknown.add(8);
    const second = rig.clock.sleep(1_500).then(() => rig.redrive('--json'));
    const runs = await rig.until(Promise.all([rig.redrive('--json', '--limit', `${limit}`), second]));
    const left = await rig.settled();
    const processed = rig.ids.filter((id) => rig.statusOf(id) === 'PROCESSED');
    expect(rig.charged.toSorted()).toEqual(processed.toSorted());
    const sends = processed.map((id) => rig.sent.filter(({ body }) => body.includes(id)).length);
    expect(sends.some((count) => count > 1)).toBe(isShared);
    const outcomes = runs.map((run) => documentOf(run).deadLetters);
    const STATUS: Readonly<Record<string, string>> = { processed: 'PROCESSED', 'failed-again': 'REJECTED' };
    for (const { eventId, outcome } of outcomes.flat())
      if (STATUS[outcome] !== undefined)
        expect([eventId, rig.statusOf(eventId)]).toEqual([eventId, STATUS[outcome]]);
    const told = outcomes.flat().filter(({ outcome }) => outcome === 'processed' || outcome === 'deleted');
    expect(new Set(told.map(({ eventId }) => eventId))).toEqual(new Set(processed));
    // Dead letters that two commands held may stay, and the next redrive deletes them.
    expect(rig.ids.filter((id) => !processed.includes(id) && !left.includes(id))).toEqual([]);
    rig.broken.clear();
    rig.unknown.clear();
    await rig.clock.advance(900_000);
    expect((await rig.until(rig.redrive())).code).toBe(0);
    expect(rig.charged.toSorted()).toEqual(rig.ids.toSorted());
    expect(await rig.settled()).toEqual([]);
  },
  60_000,
);
