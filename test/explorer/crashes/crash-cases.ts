import { leased, transactional } from '../../../lambdas/runtime/consume/handler.ts';
import type { Scheduler } from '../../../testing/explorer/actor.ts';
import type { ConsumerWorldOptions } from '../../../testing/explorer/consumer-parts.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { markFirst } from '../relay-holes.ts';
import type { RelayWorld, RelayWorldOptions } from '../relay-world.ts';
import { BRIDGE_CASES } from './bridge-cases.ts';

/** A choice that a schedule makes where it would otherwise go on in the ordinary way. */
export interface Turn {
  /** The ordinary way at which it is made, as `<actor>: <label>`. @default any */
  readonly at?: RegExp;
  /** The way that it takes instead. */
  readonly take: RegExp;
}

interface CommonCase {
  readonly id: string;
  readonly title: string;
  /** One sentence: what repairs it, and what is repeated. */
  readonly about: string;
  readonly turns: readonly Turn[];
}

/** A crash between the commit and the bus. */
interface RelayCase extends CommonCase {
  readonly part: 'write' | 'relay' | 'broken';
  readonly world?: Partial<RelayWorldOptions>;
  readonly act: (world: RelayWorld, scheduler: Scheduler) => Promise<void>;
}

/** A crash at the consumer. */
interface ConsumerCase extends CommonCase {
  readonly part: 'consume';
  readonly world?: Partial<ConsumerWorldOptions>;
  /** Workers that run from the beginning; one more comes at the end. @default 1 */
  readonly workers?: number;
}

/** A crash at a bridge, or a failure of its target. */
interface BridgeCase extends CommonCase {
  readonly part: 'bridge';
}

/** One crash, at one point of the protocol. */
export type CrashCase = RelayCase | ConsumerCase | BridgeCase;

const CHARGE_ID = { chargeId: 'ch_1' };

/** The commit of every handler here: counts the payments, so that a second one shows. */
const PAYMENT = {
  writes: [
    {
      Update: {
        Key: { PK: 'PAYMENT#1', SK: 'PAYMENT' },
        UpdateExpression: 'ADD payments :one',
        ExpressionAttributeValues: { ':one': 1 },
      },
    },
  ],
};

/** The handler of every case of a consumer but the transactional one. */
export const chargeOrder = leased(ThingHappened, async (_event, ctx) => {
  await ctx.once('charge', async () => CHARGE_ID);
  await ctx.commit(PAYMENT);
});

const recordPayment = transactional(ThingHappened, async () => PAYMENT);

const produceThenStream: RelayCase['act'] = async (world, scheduler) => {
  await world.produce(scheduler.actor('producer'));
  await world.stream(scheduler.actor('stream'), 2);
};

const WRITE: readonly CrashCase[] = [
  {
    id: 'no-crash',
    part: 'write',
    title: 'No crash: the outbox',
    about: 'The usual path: one transaction, one PutEvents, one mark.',
    turns: [],
    act: produceThenStream,
  },
  {
    id: 'before-the-transaction',
    part: 'write',
    title: 'The producer crashes before its transaction',
    about: 'Nothing was written. The caller retries.',
    turns: [{ take: /producer: transact.*-> crash before/ }],
    act: async (world, scheduler) => {
      const producer = scheduler.actor('producer');
      await world.produce(producer);
      await world.produce(producer);
      await world.stream(scheduler.actor('stream'), 1);
    },
  },
  {
    id: 'in-the-transaction',
    part: 'write',
    title: 'The response to the transaction is lost',
    about: 'The runtime sends the transaction again under the same token, so DynamoDB applies it once.',
    turns: [{ take: /producer: transact.*-> the answer is lost$/ }],
    act: produceThenStream,
  },
  {
    id: 'after-the-transaction',
    part: 'write',
    title: 'The producer crashes after its transaction',
    about: "The event is published anyway. The condition on the order refuses the caller's retry.",
    turns: [{ take: /producer: transact.*-> crash after/ }],
    act: async (world, scheduler) => {
      const producer = scheduler.actor('producer');
      await world.produce(producer);
      await world.stream(scheduler.actor('stream'), 1);
      await world.produce(producer);
    },
  },
  {
    id: 'publish-at-once',
    part: 'write',
    title: 'A producer that publishes at once crashes before the mark',
    about: "The stream relay waits until the producer's turn is over, then publishes a duplicate.",
    turns: [{ take: /producer: put Thing.*-> crash after/ }],
    act: async (world, scheduler) => {
      void world.produce(scheduler.actor('producer'), { atOnce: true });
      await world.streamAfterCommit(scheduler.actor('stream'), 2);
    },
  },
];

const RELAY: readonly CrashCase[] = [
  {
    id: 'before-publish',
    part: 'relay',
    title: 'The stream relay crashes before PutEvents',
    about: 'The row is still PENDING. The event source mapping retries the batch.',
    turns: [{ take: /stream: put Thing.*-> crash before/ }],
    act: produceThenStream,
  },
  {
    id: 'before-mark',
    part: 'relay',
    title: 'The stream relay crashes between PutEvents and the mark',
    about: 'The retry publishes the event again, under the same event id. Inboxes absorb the duplicate.',
    turns: [{ take: /stream: put Thing.*-> crash after/ }],
    act: produceThenStream,
  },
  {
    id: 'mark-lost',
    part: 'relay',
    title: 'The stream relay crashes in the mark',
    about: 'The mark was applied. The retry publishes a duplicate, and its mark finds the row PUBLISHED.',
    turns: [{ take: /stream: update each.*PUBLISHED -> crash after/ }],
    act: produceThenStream,
  },
  {
    id: 'stream-misses-it',
    part: 'relay',
    title: 'The stream delivers nothing',
    about: 'The sweep reads each minute of the table and publishes the rows that are still PENDING.',
    turns: [],
    act: (world, scheduler) => world.produce(scheduler.actor('producer')),
  },
  {
    id: 'sweep-after-claim',
    part: 'relay',
    title: 'A sweep crashes between its claim and PutEvents',
    about:
      'No other publisher may take the row while the claim lasts (30 s). The next sweep claims the row again.',
    turns: [{ take: /sweep: update each.*another lease -> crash after/ }],
    world: { events: [{ ageMs: 110_000 }] },
    act: (world, scheduler) => world.sweep(scheduler.actor('sweep')),
  },
];

const CONSUME: readonly CrashCase[] = [
  {
    id: 'no-crash-inbox',
    part: 'consume',
    title: 'No crash: the inbox',
    about: 'Claim, effect with its stored result, commit, acknowledgement.',
    turns: [],
  },
  {
    id: 'before-the-claim',
    part: 'consume',
    title: 'The consumer crashes before the claim',
    about: 'Nothing was written. SQS redelivers the message after its visibility timeout (180 s).',
    turns: [{ take: /worker 1: update .*PROCESSING -> crash before/ }],
  },
  {
    id: 'after-the-claim',
    part: 'consume',
    title: 'The consumer crashes after the claim',
    about: 'The lease expires after 30 s. The next receive takes over.',
    turns: [{ take: /worker 1: update .*PROCESSING -> crash after/ }],
  },
  {
    id: 'before-the-effect',
    part: 'consume',
    title: 'The consumer crashes in an effect, before the provider acted',
    about: 'The effect started but has no result, so the next worker runs it under the same key.',
    turns: [{ take: /worker 1: effect.*-> crash before/ }],
  },
  {
    id: 'after-the-effect',
    part: 'consume',
    title: 'The consumer crashes after the provider acted',
    about:
      'The result is not stored, so the provider is called again, with the same key. If it honors the key, it charges once.',
    turns: [{ take: /worker 1: effect.*-> crash after/ }],
  },
  {
    id: 'after-the-result',
    part: 'consume',
    title: "The consumer crashes after the effect's result is stored",
    about: 'The next worker reads the stored result. The provider is not called again.',
    turns: [{ take: /worker 1: update .*COMPLETED -> crash after/ }],
  },
  {
    id: 'in-the-commit',
    part: 'consume',
    title: 'The response to the commit is lost',
    about: 'The runtime sends the commit again under the same token, so it is applied once.',
    turns: [{ take: /worker 1: transact.*-> the answer is lost$/ }],
  },
  {
    id: 'after-the-commit',
    part: 'consume',
    title: 'The consumer crashes after the commit, before the acknowledgement',
    about: 'SQS redelivers the message. The inbox row is PROCESSED, so the duplicate is absorbed.',
    turns: [{ take: /worker 1: transact.*-> crash after/ }],
  },
  {
    id: 'acknowledgement-lost',
    part: 'consume',
    title: 'SQS does not delete the message',
    about: 'The redelivered message is a duplicate, and is absorbed.',
    turns: [{ take: /worker 1: delete the message -> the message is not deleted/ }],
  },
  {
    id: 'stalled-worker',
    part: 'consume',
    title: 'A worker stalls past its lease, then commits',
    about:
      'A duplicate lets a second worker take over. The fencing token refuses the commit of the first one.',
    turns: [
      { at: /worker 1: transact/, take: /time: 3\d{4} ms pass/ },
      { at: /worker 1: transact/, take: /worker 2: / },
    ],
    world: { copies: 2 },
    workers: 2,
  },
  {
    id: 'transactional-handler',
    part: 'consume',
    title: 'A transactional handler crashes after its transaction',
    about: 'Its one transaction wrote the rows and the inbox row, so the duplicate is absorbed.',
    turns: [{ take: /worker 1: transact.*-> crash after/ }],
    world: { handler: () => recordPayment },
  },
];

/** A protocol that Mailroom does not use. Its verdict is a lost event. */
const BROKEN: readonly CrashCase[] = [
  {
    id: 'mark-before-publish',
    part: 'broken',
    title: 'Mark before publish: the event is lost',
    about: 'The row is PUBLISHED, the bus never received the event, and no sweep looks for it.',
    turns: [{ take: /sweep: put Thing.*-> crash before/ }],
    world: { events: [{ ageMs: 110_000 }], tamper: { bus: (bus, table) => markFirst(bus, table) } },
    act: (world, scheduler) => world.sweep(scheduler.actor('sweep')),
  },
];

/** Every case, in the order in which an event meets them. */
export const CRASH_CASES: readonly CrashCase[] = [...WRITE, ...RELAY, ...CONSUME, ...BRIDGE_CASES, ...BROKEN];
