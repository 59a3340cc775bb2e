import { leased } from '../../lambdas/runtime/consume/handler.ts';
import type { SettleRequest } from '../../lambdas/runtime/consume/settle-requests.ts';
import { inboxKey } from '../../lambdas/runtime/store/keys.ts';
import { OUTBOX_PREFIX } from '../../lambdas/runtime/store/outbox-partition.ts';
import type { Key, TransactAction } from '../../lambdas/runtime/store/table.ts';
import type { ConsumerWorldOptions } from '../../testing/explorer/consumer-parts.ts';
import { type ConsumerWorld, consumerWorld } from '../../testing/explorer/consumer-world.ts';
import type { Scenario } from '../../testing/explorer/exploration.ts';
import { ThingHappened } from '../support/runtime-rig.ts';
import { ADD_ONE, CHARGE, COUNTER, charge } from './consumer-handlers.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import { rejectedRows } from './operator-desk.ts';
import type { Bounds } from './relay-scenarios.ts';

/** The rows to which a rejection, a refund and a manual fix add one. */
const REJECTIONS = { PK: 'REJECTIONS#1', SK: 'COUNTER' };
const REFUNDS = { PK: 'REFUNDS#1', SK: 'COUNTER' };
const FIXES = { PK: 'FIXES#1', SK: 'COUNTER' };

/** The longest that a queue takes to come to rest, in receives. */
const REST_RECEIVES = 60;

const NOTE = { by: 'ada', reason: 'done by hand' };

/** Charges and commits. If it is rejected instead, a charge whose result is known is refunded. */
const chargeOrRefund = leased(
  ThingHappened,
  async (_event, ctx) => {
    await charge(ctx);
    await ctx.commit(ADD_ONE);
  },
  {
    rejected: async (_event, { effects }) => ({
      writes: [addOne(REJECTIONS), ...(effects[CHARGE]?.state === 'completed' ? [addOne(REFUNDS)] : [])],
      events: ADD_ONE.events,
    }),
  },
);

interface Setting {
  readonly name: string;
  readonly world?: Partial<ConsumerWorldOptions>;
  readonly request: (world: ConsumerWorld) => SettleRequest;
}

const reject = ({ queue }: ConsumerWorld): SettleRequest => ({
  mailroomReject: { ...NOTE, body: queue.messages()[0]?.body ?? '' },
});

const SETTINGS: readonly Setting[] = [
  { name: 'a formal rejection', request: reject },
  { name: 'a formal rejection of what is redriven', world: { items: rejectedRows }, request: reject },
  {
    name: 'a manual fix of what is redriven',
    world: { items: rejectedRows },
    request: ({ eventId }) => ({
      mailroomCommit: { ...NOTE, eventId, writes: [addOne(FIXES)], events: [] },
    }),
  },
];

/** An operator who has the consumer's function end a message with writes, while workers receive it. */
export function rejectionScenarios({ budget, actors }: Bounds, tamper: InboxTamper = {}): Scenario[] {
  return SETTINGS.map(({ name, world: options, request }) => ({
    name: `inbox: ${name}`,
    budget,
    begin: async (scheduler) => {
      const world = await consumerWorld(scheduler, {
        event: ThingHappened.create({ aggregateId: 'thing-1', data: { n: 1 } }),
        handler: () => chargeOrRefund,
        ...options,
        ...tamper,
      });
      const asked = request(world);
      for (let number = 1; number <= actors; number += 1) {
        void world.work(scheduler.actor(`worker ${number}`), 1);
      }
      const operator = scheduler.actor('operator');
      void operator
        .step('has looked at the message', () => {}) // which may be at any time
        .then(() => world.ask(operator, asked));
      return {
        ...world,
        settle: (again) => void world.work(again.actor('rest'), REST_RECEIVES),
        verdict: () => world.unrest() ?? verdict(world),
      };
    },
  }));
}

/** Either the handler commits, or the operator does; and a charge without the handler's commit is refunded. */
function verdict(world: ConsumerWorld): string | undefined {
  const { memory, config, eventId, log } = world;
  const count = (key: Key) => Number(memory.item(key)?.n ?? 0);
  const [applied, rejections, refunds, fixes] = [COUNTER, REJECTIONS, REFUNDS, FIXES].map(count);
  const events = memory.items().filter(({ PK }) => String(PK).startsWith(OUTBOX_PREFIX)).length;
  const row = memory.item(inboxKey(config.consumer, eventId));
  const isFixed = row?.resolvedBy !== undefined;
  const isRejected = row?.status === 'DISCARDED';
  const charges = log.happened.size;
  const found = { applied, rejections, refunds, fixes, events, charges };
  const expected = isRejected
    ? { applied: 0, rejections: 1, refunds: charges, fixes: 0, events: 1, charges }
    : isFixed
      ? { applied: 0, rejections: 0, refunds: 0, fixes: 1, events: 0, charges: 0 }
      : { applied: 1, rejections: 0, refunds: 0, fixes: 0, events: 1, charges: 1 };
  return JSON.stringify(found) === JSON.stringify(expected)
    ? undefined
    : `The message is ${isFixed ? 'fixed' : String(row?.status)}, with ${JSON.stringify(found)}`;
}

function addOne(Key: Key): TransactAction {
  return {
    Update: {
      Key: { ...Key },
      UpdateExpression: 'ADD n :one',
      ExpressionAttributeValues: { ':one': 1 },
    },
  };
}
