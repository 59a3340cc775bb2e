import { settled } from '../../cli/dead-letters/redrive-plan.ts';
import { type Replacement, type ReplacementDeps, sendInPlace } from '../../cli/dead-letters/resend.ts';
import { effectsText } from '../../cli/dead-letters/resend-plan.ts';
import { resentEventId } from '../../cli/dead-letters/resent-id.ts';
import { readInbox } from '../../cli/reading/message-reader.ts';
import { replacementOf } from '../../cli/reading/resent-event.ts';
import { type Handler, leased } from '../../lambdas/runtime/consume/handler.ts';
import { PoisonMessage } from '../../lambdas/runtime/errors.ts';
import type { Note } from '../../lambdas/runtime/store/operation-record.ts';
import type { Actor } from '../../testing/explorer/actor.ts';
import { type ConsumerWorld, consumerWorld } from '../../testing/explorer/consumer-world.ts';
import type { Scenario } from '../../testing/explorer/exploration.ts';
import { ThingHappened } from '../support/runtime-rig.ts';
import { deskOf, rejectedRows } from './operator-desk.ts';
import type { Bounds } from './relay-scenarios.ts';

/** Takes the place of a part of the resend, to show what happens without one of its rules. */
export interface ResendTamper {
  readonly send?: (deps: ReplacementDeps, replacement: Replacement, note: Note) => Promise<void>;
  /** @param operator - who sends it */
  readonly idOf?: (operator: Actor, eventId: string, data: unknown) => string;
}

interface Setting {
  readonly name: string;
  readonly handler: Handler;
  /** @returns what is wrong at the end, when each operator has repeated the command */
  readonly verdict: (world: ConsumerWorld) => string | undefined;
}

const COUNTER = { PK: 'COUNTER#1', SK: 'COUNTER' };

const ADD_ONE = {
  Update: { Key: COUNTER, UpdateExpression: 'ADD n :one', ExpressionAttributeValues: { ':one': 1 } },
};

/** The data that the two operators send; that of the old event is 1. */
const DATA = [5, 6] as const;

const NOTE: Note = { by: 'ada', reason: 'the price was wrong' };

/** The longest that a queue takes to come to rest, in receives. */
const REST_RECEIVES = 60;

const SETTINGS: readonly Setting[] = [
  {
    name: 'other data in place of an event that is redriven',
    handler: leased(ThingHappened, async (_event, ctx) => {
      await ctx.commit({ writes: [ADD_ONE] });
    }),
    verdict: ({ memory, queue }) => {
      const n = Number(memory.item(COUNTER)?.n ?? 0);
      if (n !== 1) return `Of the event and those in its place, ${n} ran`;
      return queue.messages().length > 0 ? 'A message is left in the queue' : undefined;
    },
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

/** Two operators who each send other data in place of an event that a third one redrives, as scenarios. */
export function resendScenarios(bounds: Bounds, tamper: ResendTamper = {}): Scenario[] {
  return SETTINGS.map((setting) => scenarioOf(setting, bounds, tamper));
}

function scenarioOf({ name, handler, verdict }: Setting, { budget }: Bounds, tamper: ResendTamper): Scenario {
  return {
    name: `inbox: ${name}`,
    budget,
    begin: async (scheduler) => {
      const world = await consumerWorld(scheduler, {
        event: ThingHappened.create({ aggregateId: 'thing-1', data: { n: 1 } }),
        handler: () => handler,
        items: rejectedRows,
      });
      const [redriven] = world.queue.messages();
      const resends = (operator: Actor, n: number) =>
        resend(world, operator, { n, redriven: redriven?.body ?? '', now: () => scheduler.now() }, tamper);
      void world.work(scheduler.actor('worker'), 1);
      for (const n of DATA) void resends(scheduler.actor(`operator of ${n}`), n);

      async function rest(last: Actor): Promise<void> {
        await world.work(last, REST_RECEIVES);
        for (const n of DATA) await resends(last, n);
        await world.work(last, REST_RECEIVES);
      }

      return { ...world, settle: (again) => void rest(again.actor('rest')), verdict: () => verdict(world) };
    },
  };
}

interface Resend {
  readonly n: number;
  /** The message of the old event. */
  readonly redriven: string;
  /** The true time, epoch milliseconds. */
  readonly now: () => number;
}

/** The command, which may crash at any of its calls: it plans by the rows, and sends. */
async function resend(
  world: ConsumerWorld,
  operator: Actor,
  { n, redriven, now }: Resend,
  { send = sendInPlace, idOf = (_, eventId, data) => resentEventId('worker', eventId, data) }: ResendTamper,
): Promise<void> {
  const { eventId, config, queue } = world;
  await operator.step('looks at the dead letter', () => {}); // which may be at any time
  const desk = deskOf(operator, world.tableOf(operator), now);
  const event = JSON.parse(redriven) as { readonly detail: object };
  await operator.invoke(60_000, async () => {
    const row = await readInbox(desk.table, 'worker', eventId, true);
    const newEventId = idOf(operator, eventId, { n });
    const other = replacementOf(row);
    if (other !== undefined && other !== newEventId) return;
    if (other === undefined && settled(row, now()) !== undefined) return;
    if (effectsText(row) !== '') return;
    if (settled(await readInbox(desk.table, 'worker', newEventId, true), now()) !== undefined) return;
    const detail = { ...event.detail, eventId: newEventId, data: { n } };
    const body = JSON.stringify({ ...event, detail });
    const { inboxRetentionDays } = config;
    const consumer = { name: 'worker', queue: 'queue', inboxRetentionDays };
    const queues = {
      send: (_url: string, text: string) =>
        operator.call({ label: 'send the new event', perform: async () => queue.send(text), effect: true }),
    };
    await send({ ...desk, queues }, { consumer, eventId, row, newEventId, body }, NOTE);
  });
}
