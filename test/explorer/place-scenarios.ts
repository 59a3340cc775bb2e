import { leased } from '../../lambdas/runtime/consume/handler.ts';
import type { HandledEvent } from '../../lambdas/runtime/events/external-event.ts';
import { holderOf } from '../../lambdas/runtime/inbox/limit-places.ts';
import { limitWaitOf } from '../../lambdas/runtime/inbox/past-attempts.ts';
import type { InboxRow, LimitRow } from '../../lambdas/runtime/store/inbox-row.ts';
import { inboxKey, limitKey } from '../../lambdas/runtime/store/keys.ts';
import type { Key } from '../../lambdas/runtime/store/table.ts';
import type { Budget } from '../../testing/explorer/actor.ts';
import type { ConsumerWorld } from '../../testing/explorer/consumer-world.ts';
import { ThingHappened } from '../support/runtime-rig.ts';
import { ADD_ONE, COUNTER } from './consumer-handlers.ts';
import { type ConsumerSetting, counted, happened, type Moment } from './consumer-scenario.ts';

/** The runs that may go on: `<end>/<message>`, where the end is that of the function, milliseconds since the beginning. */
const RUNNING = { PK: 'RUNNING#1', SK: 'RUNNING' };

/** A message that passed another one. The order is by the workers' clocks, so it is judged only if they are right. */
const PASSED = { PK: 'PASSED#1', SK: 'PASSED' };

const KEY = 'merchant-1';

interface Given {
  readonly concurrency: number;
  /** The key of a message. @default all have the same */
  readonly keyOf?: (event: { readonly aggregateId: string }) => string;
  /** @default no rate */
  readonly perSecond?: number;
  /** The duration of a run, milliseconds. @default that of its calls */
  readonly takesMs?: number;
}

/** A handler with places, which checks at its start that it may start, and reads between its start and its commit. */
function placed({
  concurrency,
  keyOf = () => KEY,
  perSecond,
  takesMs = 0,
}: Given): ConsumerSetting['handler'] {
  return (moment) =>
    ({ table }, actor) =>
      leased(
        ThingHappened,
        async (event, ctx) => {
          const { memory, violate } = moment.world();
          const run = `${moment.sinceStartMs() + ctx.remainingMs()}/${keyOf(event)}/${event.aggregateId}`;
          const change = (verb: 'ADD' | 'DELETE') =>
            memory.write({
              Update: {
                Key: RUNNING,
                UpdateExpression: `${verb} runs :run`,
                ExpressionAttributeValues: { ':run': new Set([run]) },
              },
            });
          await change('ADD');
          const found = tooMany(moment, concurrency, keyOf(event));
          if (found !== undefined) violate(found);
          const what = passed(moment, event, keyOf(event));
          if (what !== undefined) await memory.write({ Put: { Item: { ...PASSED, what } } });
          try {
            await table.get(COUNTER);
            if (takesMs > 0) await actor.clock.sleep(takesMs);
            await ctx.commit(ADD_ONE);
          } finally {
            await change('DELETE');
          }
        },
        { limit: { key: keyOf, concurrency, perSecond } },
      );
}

function tooMany(moment: Moment, concurrency: number, key: string): string | undefined {
  const world = moment.world();
  const runs = world.memory.item(RUNNING)?.runs as Set<string> | undefined;
  const now = moment.sinceStartMs();
  const live = [...(runs ?? [])].filter((run) => {
    const [end, of] = run.split('/');
    return of === key && Number(end) > now;
  });
  if (live.length > concurrency) return `More runs than places: ${live.join(', ')} at ${now} ms`;
  const held = [...(bucketOf(world, key)?.holders ?? [])].filter(
    (holder) => Number.parseInt(holder, 10) > moment.now(),
  );
  return held.length < live.length
    ? `A run goes on without a place: ${live.join(', ')} at ${now} ms`
    : undefined;
}

function bucketKey({ config }: ConsumerWorld, key: string): Key {
  return limitKey({ consumer: config.consumer, source: 'things', type: 'ThingHappened' }, key);
}

function bucketOf(world: ConsumerWorld, key: string): LimitRow | undefined {
  return world.memory.item(bucketKey(world, key)) as LimitRow | undefined;
}

/** Returns a violation if this message passed another one that was waiting when its worker claimed it. */
function passed(moment: Moment, { eventId }: HandledEvent, key: string): string | undefined {
  const world = moment.world();
  const { memory, config, eventIds } = world;
  const rowOf = (id: string) => memory.item(inboxKey(config.consumer, id)) as InboxRow | undefined;
  const own = rowOf(eventId);
  const claimedAt = Number(own?.claimedAt);
  const waited = limitWaitOf(own?.pastAttempts);
  const bucket = bucketOf(world, key);
  // A start removes `headAt`, so a head without it was the head before this one.
  const { head, headAt = 0, headSince = 0, headUntil = 0 } = bucket ?? {};
  const holders = [...(bucket?.holders ?? [])].length;
  const now = moment.now();
  if (
    waited !== undefined &&
    head !== undefined &&
    headAt < claimedAt &&
    headUntil > now &&
    headSince <= waited.since &&
    holders >= Number(bucket?.concurrency) &&
    head !== `${config.consumer}#${eventId}`
  )
    return `The head of the line was passed: ${head}`;
  if (waited !== undefined) return undefined;
  const ahead = eventIds.find((id) => {
    const row = rowOf(id);
    const wait = limitWaitOf(row?.pastAttempts);
    const releasedAt = row?.pastAttempts?.at(-1)?.at ?? Number.POSITIVE_INFINITY;
    const slotAt = wait?.limit.slotAt ?? 0;
    const isOfKey = wait?.limit.key === key;
    return isOfKey && row?.status === 'FAILED' && releasedAt < claimedAt && slotAt > now;
  });
  return ahead === undefined ? undefined : `A newcomer passed a message that waited: ${ahead}`;
}

/** A run in another process holds a place, for this long from the start, milliseconds. */
const heldElsewhere =
  (concurrency: number, forMs: number): ConsumerSetting['before'] =>
  async (world, scheduler) => {
    const holders = new Set([holderOf(scheduler.now() + forMs, 'elsewhere')]);
    await world.memory.write({
      Put: { Item: { ...bucketKey(world, KEY), schema: 1, concurrency, holders } },
    });
    const runs = new Set([`${forMs}/${KEY}/elsewhere`]);
    await world.memory.write({ Put: { Item: { ...RUNNING, runs } } });
  };

/** A long run, and a place that a crash leaves, take more receives than most scenarios have. */
const RECEIVES = { maxReceiveCount: 40 };

/** Returns a verdict: a violation if a message was not processed exactly once, or passed another one. */
function inOrder(messages: number, more: (world: ConsumerWorld) => string | undefined = () => undefined) {
  return (world: ConsumerWorld, { faults }: Budget): string | undefined => {
    const what = faults === 0 ? world.memory.item(PASSED)?.what : undefined;
    return counted(world, messages) ?? more(world) ?? (what === undefined ? undefined : String(what));
  };
}

const THREE = { ...RECEIVES, others: [happened(2), happened(3)] };

/** Handlers with a concurrency. */
export const PLACE_SETTINGS: readonly ConsumerSetting[] = [
  {
    name: 'a concurrency of one: two messages',
    handler: placed({ concurrency: 1 }),
    world: { ...RECEIVES, others: [happened(2)] },
    verdict: inOrder(2),
  },
  {
    name: 'a concurrency of one: two messages in one batch',
    handler: placed({ concurrency: 1 }),
    world: { ...RECEIVES, others: [happened(2)], batchSize: 2 },
    verdict: inOrder(2),
  },
  {
    name: 'a concurrency of one: a message that is delivered to two workers at once',
    handler: placed({ concurrency: 1 }),
    world: { ...RECEIVES, others: [happened(2)], twice: true },
    verdict: inOrder(2),
  },
  {
    name: 'a concurrency of two, one place held elsewhere: two messages',
    handler: placed({ concurrency: 2 }),
    world: { ...RECEIVES, others: [happened(2)] },
    before: heldElsewhere(2, 3_600_000),
    verdict: inOrder(2),
  },
  {
    name: 'a concurrency of one, short runs: three messages',
    handler: placed({ concurrency: 1, takesMs: 1_500 }),
    world: THREE,
    verdict: inOrder(3),
  },
  {
    name: 'a concurrency of one, long runs: three messages',
    handler: placed({ concurrency: 1, takesMs: 10_000 }),
    world: THREE,
    invocations: 3,
    verdict: inOrder(3),
  },
  {
    name: 'a concurrency of one, two keys: two messages in one batch',
    handler: placed({ concurrency: 1, keyOf: ({ aggregateId }) => aggregateId }),
    world: { ...RECEIVES, others: [happened(2)], batchSize: 2 },
    verdict: inOrder(2, hasWaited),
  },
  {
    name: 'a concurrency of one and a rate: two messages',
    handler: placed({ concurrency: 1, perSecond: 0.1 }),
    world: { ...RECEIVES, others: [happened(2)] },
    verdict: inOrder(2),
  },
];

/** Returns a violation if a message has waited for a place although no other message has its key. */
function hasWaited({ memory, config, eventIds }: ConsumerWorld): string | undefined {
  const waited = eventIds.find((id) =>
    JSON.stringify(memory.item(inboxKey(config.consumer, id))?.pastAttempts ?? []).includes('slotAt'),
  );
  return waited === undefined ? undefined : `${waited} has waited for the place of another key`;
}
