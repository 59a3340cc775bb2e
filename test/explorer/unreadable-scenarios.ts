import { discardSentFirst } from '../../cli/changes/discard/sent-first.ts';
import { dynamoRows } from '../../cli/deployment/dynamo-rows.ts';
import { impliedEvents } from '../../cli/reports/dead-letters/implied-events.ts';
import { readStanding, settled } from '../../cli/reports/dead-letters/standing.ts';
import { leased } from '../../lambdas/runtime/consume/handler.ts';
import type { ConsumerEntry, Directory } from '../../lambdas/runtime/operations/directory.ts';
import type { Queues } from '../../lambdas/runtime/operations/queues.ts';
import { outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import type { Note } from '../../lambdas/runtime/store/operation-record.ts';
import { SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import { storedEnvelope } from '../../lambdas/runtime/store/stored-envelope.ts';
import type { Actor } from '../../testing/explorer/actor.ts';
import { type ConsumerWorld, consumerWorld } from '../../testing/explorer/consumer-world.ts';
import type { Scenario } from '../../testing/explorer/exploration.ts';
import { ThingHappened } from '../support/runtime-rig.ts';
import { deskOf } from './operator-desk.ts';
import type { Bounds } from './relay-scenarios.ts';

/** Takes the place of the discard, to show what happens without its rule. */
export interface UnreadableTamper {
  readonly discard?: typeof discardSentFirst;
}

const COUNTER = { PK: 'COUNTER#1', SK: 'COUNTER' };

const ADD_ONE = {
  Update: { Key: COUNTER, UpdateExpression: 'ADD n :one', ExpressionAttributeValues: { ':one': 1 } },
};

const CHANGED = { name: 'an unreadable message that is a part of an event, and is discarded' };

const NOTE: Note = { by: 'ada', reason: 'its rule changed events' };

/** The longest that a queue takes to come to rest, in receives. */
const REST_RECEIVES = 60;

/** The dead letter of the changed event. */
interface ChangedLetter {
  readonly body: string;
  isDeleted: boolean;
}

/** Two operators who discard the unreadable message of an event that its rule has changed, as scenarios. */
export function unreadableScenarios(
  { budget }: Bounds,
  { discard = discardSentFirst }: UnreadableTamper = {},
): Scenario[] {
  return [
    {
      name: `inbox: ${CHANGED.name}`,
      budget,
      begin: async (scheduler) => {
        const world = await consumerWorld(scheduler, {
          event: ThingHappened.create({ aggregateId: 'thing-1', data: { n: 1 } }),
          handler: () => leased(ThingHappened, async (_event, ctx) => ctx.commit({ writes: [ADD_ONE] })),
        });
        const { memory, queue, eventId } = world;
        const [message] = queue.receive(1);
        const { detail } = JSON.parse(message?.body ?? '{}');
        const envelope = JSON.stringify(detail);
        const row = {
          ...outboxKeyOf(eventId),
          ...{
            schema: SCHEMA,
            status: 'PUBLISHED',
            leaseUntil: 0,
            attempts: 0,
            publishedAt: scheduler.now(),
          },
          ...{ source: ThingHappened.source, type: ThingHappened.type },
        };
        await memory.write({ Put: { Item: { ...row, ...storedEnvelope(envelope, row) } } });
        queue.delete(message?.receiptHandle ?? '');
        const letter: ChangedLetter = { body: envelope, isDeleted: false };
        const run = (operator: Actor) =>
          discardLetter(world, letter, operator, () => scheduler.now(), discard);
        void world.work(scheduler.actor('worker'), 1);
        for (const who of ['ada', 'bob']) void run(scheduler.actor(`discard of ${who}`));
        const rest = async (last: Actor) => {
          await run(last);
          await world.work(last, REST_RECEIVES);
        };
        return {
          ...world,
          state: (left) => `${world.state(left)} ${letter.isDeleted}`,
          settle: (again) => void rest(again.actor('rest')),
          verdict: () => {
            const n = Number(memory.item(COUNTER)?.n ?? 0);
            if (n !== 1) return `The event ran ${n} times`;
            return letter.isDeleted ? undefined : 'The dead letter is not deleted';
          },
        };
      },
    },
  ];
}

/** The discard of the dead letter as the command plans and makes it. It may crash at any of its calls. */
async function discardLetter(
  world: ConsumerWorld,
  letter: ChangedLetter,
  operator: Actor,
  now: () => number,
  discard: typeof discardSentFirst,
): Promise<void> {
  const { inboxRetentionDays } = world.config;
  const events = [{ source: ThingHappened.source, type: ThingHappened.type }];
  const consumer = { name: 'worker', queue: 'queue', inboxRetentionDays, events } as unknown as ConsumerEntry;
  const source = { name: 'consumer:worker', kind: 'consumer', url: 'dead letters', consumer } as const;
  const desk = deskOf(operator, world.tableOf(operator), now);
  const queues: Pick<Queues, 'depth' | 'send' | 'remove'> = {
    depth: async () => ({
      arn: 'arn:aws:sqs:eu-west-1:111122223333:queue',
      waiting: 0,
      inFlight: 0,
      retentionMs: 1,
    }),
    send: (_url, text) =>
      operator.call({ label: 'send the event', perform: async () => world.queue.send(text), effect: true }),
    remove: () =>
      operator.call({
        label: 'delete the dead letter',
        perform: async () => {
          letter.isDeleted = true;
        },
        effect: true,
      }),
  };
  await operator.step('receives the dead letters', () => {});
  if (letter.isDeleted) return;
  await operator.invoke(60_000, async () => {
    const stored = dynamoRows(desk.table);
    const directory = { mailroom: { shards: 1 }, consumers: [consumer] } as unknown as Directory;
    const deps = { ...desk, stored, queues, directory };
    const received = { messageId: 'm', receiptHandle: 'r', body: letter.body, sentAt: now(), attributes: {} };
    const unknown = {
      type: undefined,
      sentAt: 0,
      expiresAt: undefined,
      fingerprint: undefined,
      lastError: undefined,
    };
    const standing = await readStanding(stored, 'worker', { received });
    const deadLetter = { id: 'm', eventId: undefined, ...unknown, received, ...standing };
    const [implied] = await impliedEvents(deps, consumer, [deadLetter]);
    const missing = implied?.missing ?? [];
    const outcome =
      settled(deadLetter, now()) === 'handled' ? 'handled' : missing.length > 0 ? 'repair' : 'discard';
    await discard(deps, source, { deadLetter, outcome, events: missing }, NOTE);
  });
}
