import { discardOne } from '../../cli/changes/discard/discard-one.ts';
import { queueRedriver } from '../../cli/changes/redrive/redrivers.ts';
import { replacementBy } from '../../cli/changes/resend/resend-plan.ts';
import {
  type Replacement,
  type ReplacementDeps,
  sendInPlace,
} from '../../cli/changes/resend/send-in-place.ts';
import { dynamoRows } from '../../cli/deployment/dynamo-rows.ts';
import type { DeadLetter } from '../../cli/reports/dead-letters/dead-letters.ts';
import { judgeDeadLetters } from '../../cli/reports/dead-letters/redrive-plan.ts';
import { readStanding, settled } from '../../cli/reports/dead-letters/standing.ts';
import { errorCode, PoisonMessage } from '../../lambdas/runtime/base/errors.ts';
import { type Handler, leased } from '../../lambdas/runtime/consume/handler.ts';
import type { ConsumerEntry } from '../../lambdas/runtime/operations/directory.ts';
import type { Queues } from '../../lambdas/runtime/operations/queues.ts';
import type { Note } from '../../lambdas/runtime/store/operation-record.ts';
import type { Actor } from '../../testing/explorer/actor.ts';
import { type ConsumerWorld, consumerWorld } from '../../testing/explorer/consumer-world.ts';
import type { Scenario } from '../../testing/explorer/exploration.ts';
import { ThingHappened } from '../support/runtime-rig.ts';
import { withStored } from '../support/with-stored.ts';
import { deskOf, rejectedRows } from './operator-desk.ts';
import type { Bounds } from './relay-scenarios.ts';

/** Takes the place of a part of the resend or the redrive, to show what happens without one of its rules. */
export interface ResendTamper {
  readonly send?: (deps: ReplacementDeps, replacement: Replacement, note: Note) => Promise<void>;
  /** Reads a dead letter as the redrive and the discard do. */
  readonly receive?: (deadLetter: DeadLetter) => DeadLetter;
}

interface Setting {
  readonly name: string;
  readonly handler: Handler;
  /** The old event has a dead letter, which a third operator redrives by the command. @default its message is in the queue again */
  readonly hasDeadLetter?: boolean;
  /** Two operators discard the dead letter for a reason that names another event, whose message waits. @default none does */
  readonly isDiscarded?: boolean;
  /** @returns what is wrong at the end, when each operator has repeated the command */
  readonly verdict: (world: ConsumerWorld, deadLetter: KeptDeadLetter) => string | undefined;
}

/** The dead letter of the old event. */
interface KeptDeadLetter {
  /** The message of the old event. */
  readonly body: string;
  isDeleted: boolean;
}

const COUNTER = { PK: 'COUNTER#1', SK: 'COUNTER' };

const ADD_ONE = {
  Update: { Key: COUNTER, UpdateExpression: 'ADD n :one', ExpressionAttributeValues: { ':one': 1 } },
};

/** The data that the two operators send; that of the old event is 1. */
const DATA = [5, 6] as const;

const NOTE: Note = { by: 'ada', reason: 'the price was wrong' };

const ran: Setting['verdict'] = ({ memory, queue }) => {
  const n = Number(memory.item(COUNTER)?.n ?? 0);
  if (n !== 1) return `Of the event and those in its place, ${n} ran`;
  return queue.messages().length > 0 ? 'A message is left in the queue' : undefined;
};

const addOne = leased(ThingHappened, async (_event, ctx) => {
  await ctx.commit({ writes: [ADD_ONE] });
});

const NONE: KeptDeadLetter = { body: '', isDeleted: false };

/** The longest that a queue takes to come to rest, in receives. */
const REST_RECEIVES = 60;

const SETTINGS: readonly Setting[] = [
  { name: 'other data in place of an event that is redriven', handler: addOne, verdict: ran },
  {
    name: 'other data in place of an event whose dead letter is redriven by the command',
    handler: addOne,
    hasDeadLetter: true,
    verdict: (world, { isDeleted }) =>
      ran(world, NONE) ?? (isDeleted ? undefined : 'The dead letter is not deleted'),
  },
  {
    name: 'a dead letter that is discarded for a reason that names another event',
    handler: addOne,
    hasDeadLetter: true,
    isDiscarded: true,
    verdict: (world, { isDeleted }) =>
      ran(world, NONE) ?? (isDeleted ? undefined : 'The dead letter is not deleted'),
  },
  {
    name: 'other data in place of an event whose effect has happened',
    handler: leased(ThingHappened, async ({ data: { n } }, ctx) => {
      await ctx.once('charge', async () => ({ charged: true }));
      if (n === 1) throw new PoisonMessage('the price is wrong');
    }),
    verdict: ({ log }) =>
      log.happened.size > 1 ? `The effect happened for ${log.happened.size} events` : undefined,
  },
];

/** Operators who each send other data in place of an event that another one redrives, as scenarios. */
export function resendScenarios(bounds: Bounds, tamper: ResendTamper = {}): Scenario[] {
  return SETTINGS.map((setting) => scenarioOf(setting, bounds, tamper));
}

function scenarioOf(
  { name, handler, hasDeadLetter = false, isDiscarded = false, verdict }: Setting,
  { budget }: Bounds,
  tamper: ResendTamper,
): Scenario {
  return {
    name: `inbox: ${name}`,
    budget,
    begin: async (scheduler) => {
      const world = await consumerWorld(scheduler, {
        event: ThingHappened.create({ aggregateId: 'thing-1', data: { n: 1 } }),
        others: isDiscarded ? [ThingHappened.create({ aggregateId: 'thing-2', data: { n: 2 } })] : [],
        handler: () => handler,
        items: rejectedRows,
      });
      const [message] = world.queue.messages();
      const deadLetter: KeptDeadLetter = { body: message?.body ?? '', isDeleted: false };
      if (hasDeadLetter)
        for (const { receiptHandle } of world.queue.receive(1)) world.queue.delete(receiptHandle);
      const command: Command = { world, deadLetter, now: () => scheduler.now(), tamper };
      void world.work(scheduler.actor('worker'), 1);
      if (isDiscarded)
        for (const who of ['ada', 'bob']) void discardLetter(command, scheduler.actor(`discard of ${who}`));
      else {
        if (hasDeadLetter) void redrive(command, scheduler.actor('redrive'));
        for (const n of hasDeadLetter ? DATA.slice(0, 1) : DATA)
          void resend(command, scheduler.actor(`operator of ${n}`), n);
      }

      async function rest(last: Actor): Promise<void> {
        if (isDiscarded) await discardLetter(command, last);
        await world.work(last, REST_RECEIVES);
        if (isDiscarded) return;
        // With a dead letter, the other data comes first: after a crash it replaces an event that was never sent.
        for (const n of hasDeadLetter ? DATA.toReversed() : DATA) await resend(command, last, n);
        await world.work(last, REST_RECEIVES);
        if (hasDeadLetter) await redrive(command, last);
      }

      return {
        ...world,
        state: (left) => `${world.state(left)} ${deadLetter.isDeleted}`,
        settle: (again) => void rest(again.actor('rest')),
        verdict: () => verdict(world, deadLetter),
      };
    },
  };
}

/** The parts of an operator's command. */
interface Command {
  readonly world: ConsumerWorld;
  readonly deadLetter: KeptDeadLetter;
  /** The true time, epoch milliseconds. */
  readonly now: () => number;
  readonly tamper: ResendTamper;
}

async function received(
  { world, deadLetter }: Command,
  desk: ReturnType<typeof deskOf>,
): Promise<DeadLetter> {
  const { eventId } = world;
  const message = { messageId: 'm', receiptHandle: 'r', body: deadLetter.body, sentAt: 0, attributes: {} };
  const unknown = {
    type: undefined,
    sentAt: 0,
    expiresAt: undefined,
    fingerprint: undefined,
    lastError: undefined,
  };
  const standing = await readStanding(dynamoRows(desk.table), 'worker', eventId);
  return { id: 'm', eventId, ...unknown, received: message, ...standing };
}

function sourceIn({ config: { inboxRetentionDays } }: ConsumerWorld) {
  const consumer = { name: 'worker', queue: 'queue', inboxRetentionDays } as ConsumerEntry;
  return { name: 'consumer:worker', kind: 'consumer', url: 'dead letters', consumer } as const;
}

/** Deletes the dead letter, which may crash. */
function deletionOf({ deadLetter }: Command, operator: Actor): Pick<Queues, 'remove'> {
  const perform = async () => {
    deadLetter.isDeleted = true;
  };
  return { remove: () => operator.call({ label: 'delete the dead letter', perform, effect: true }) };
}

/** The discard of the dead letter for a reason that names the other event. It may crash at any of its calls. */
async function discardLetter(command: Command, operator: Actor): Promise<void> {
  const { world, deadLetter, now, tamper } = command;
  const desk = deskOf(operator, world.tableOf(operator), now);
  const queues = deletionOf(command, operator);
  const reason = `sent again as ${world.eventIds[1]}`;
  await operator.step('receives the dead letters', () => {});
  if (deadLetter.isDeleted) return;
  await operator.invoke(60_000, async () => {
    const letter = await received(command, desk);
    const seen = tamper.receive?.(letter) ?? letter;
    await discardOne(withStored({ ...desk, queues }), sourceIn(world), seen, { ...NOTE, reason });
  });
}

/** The redrive of the dead letter, which may crash at any of its calls. */
async function redrive(command: Command, operator: Actor): Promise<void> {
  const { world, deadLetter, now, tamper } = command;
  const { memory, eventId } = world;
  const source = sourceIn(world);
  const desk = deskOf(operator, world.tableOf(operator), now);
  const queues = {
    ...sendingTo(world, operator, 'redrive the message'),
    ...deletionOf(command, operator),
  } as Partial<Queues> as Queues;
  await operator.step('receives the dead letters', () => {});
  if (deadLetter.isDeleted) return;
  await operator.invoke(60_000, async () => {
    const letter = await received(command, desk);
    const check = async () => [{ ok: true, eventId, type: 'ThingHappened' } as const];
    const deps = { table: desk.table, check, now: now() };
    const [judged] = await judgeDeadLetters(withStored(deps), source, [tamper.receive?.(letter) ?? letter]);
    if (judged?.verdict === 'runs')
      await queueRedriver(withStored({ ...desk, queues }), source, NOTE).resend(judged);
    if (judged?.verdict !== 'handled') return;
    const actual = await readStanding(dynamoRows(memory), 'worker', eventId);
    if (settled(actual, now()) !== 'handled')
      world.violate('A dead letter is deleted before one of its events was received');
    await queues.remove(source.url, { receiptHandle: 'r' } as never);
  });
}

function sendingTo({ queue }: ConsumerWorld, operator: Actor, label: string): Pick<Queues, 'send'> {
  return {
    send: (_url, text) => operator.call({ label, perform: async () => queue.send(text), effect: true }),
  };
}

/** The resend, which may crash at any of its calls: it plans by the rows, and sends. */
async function resend(command: Command, operator: Actor, n: number): Promise<void> {
  const { world, deadLetter, now, tamper } = command;
  const { config } = world;
  await operator.step('looks at the dead letter', () => {}); // which may be at any time
  const isGone = deadLetter.isDeleted;
  const desk = deskOf(operator, world.tableOf(operator), now);
  const event = JSON.parse(deadLetter.body) as { readonly detail: object };
  await operator.invoke(60_000, async () => {
    const letter = await received(command, desk);
    if (isGone && settled(letter, now()) !== 'unsent') return; // only then is it made from its outbox row
    const plan = planOf(letter, n, now);
    if (plan === undefined) return;
    const { replaced, newEventId } = plan;
    if (settled(await readStanding(dynamoRows(desk.table), 'worker', newEventId), now()) !== undefined)
      return;
    const { eventId, row } = replaced.at(-1) ?? replaced[0];
    const body = JSON.stringify({ ...event, detail: { ...event.detail, eventId: newEventId, data: { n } } });
    const consumer = { name: 'worker', queue: 'queue', inboxRetentionDays: config.inboxRetentionDays };
    const queues = sendingTo(world, operator, 'send the new event');
    await (tamper.send ?? sendInPlace)(
      withStored({ ...desk, queues }),
      { consumer, eventId, row, newEventId, body },
      NOTE,
    );
  });
}

/** The plan of a resend; `undefined` if it is refused. */
function planOf(letter: DeadLetter, n: number, now: () => number) {
  const clock = { now, sleep: async () => {} };
  try {
    return replacementBy({ clock, commandLine: String }, 'worker', letter, { data: { n } });
  } catch (error) {
    if (/^(CANNOT_RESEND|ALREADY_RESENT)$/.test(errorCode(error))) return undefined;
    throw error;
  }
}
