import type { RedriveProgress } from '../../cli/changes/redrive/redrive-run.ts';
import { queueRedriver } from '../../cli/changes/redrive/redrivers.ts';
import { dynamoRows } from '../../cli/deployment/dynamo-rows.ts';
import type { DeadLetter } from '../../cli/reports/dead-letters/dead-letters.ts';
import { type JudgedDeadLetter, judgeDeadLetters } from '../../cli/reports/dead-letters/redrive-plan.ts';
import { readStanding } from '../../cli/reports/dead-letters/standing.ts';
import { latest, orderText, STRICT_GROUP, strict } from '../../lambdas/runtime/base/order.ts';
import { transactional } from '../../lambdas/runtime/consume/handler.ts';
import type { ConsumerEntry } from '../../lambdas/runtime/operations/directory.ts';
import { skipSequence } from '../../lambdas/runtime/operations/order-operations.ts';
import type { Queues } from '../../lambdas/runtime/operations/queues.ts';
import { lastKey } from '../../lambdas/runtime/store/keys.ts';
import type { Actor } from '../../testing/explorer/actor.ts';
import { type ConsumerWorld, consumerWorld } from '../../testing/explorer/consumer-world.ts';
import type { Scenario } from '../../testing/explorer/exploration.ts';
import { withStored } from '../support/with-stored.ts';
import { deskOf, rejectedRows } from './operator-desk.ts';
import { Numbered, numbered } from './order-scenarios.ts';
import type { Bounds } from './relay-scenarios.ts';

/** Takes the place of a part of the redrive, to show what happens without one of its rules. */
export interface RedriveTamper {
  /** Changes the judgment of the dead letter. */
  readonly judged?: (judged: JudgedDeadLetter) => JudgedDeadLetter;
  /** Reads the progress of its message. */
  readonly progress?: (progress: RedriveProgress) => RedriveProgress;
}

interface Setting {
  readonly name: string;
  readonly mode: 'strict' | 'latest';
  /** An operator passes over the number at any time. @default false: number 2 is in the queue */
  readonly skips?: boolean;
}

const SETTINGS: readonly Setting[] = [
  {
    name: 'strict: a redrive by the command beside an operator who skips its number',
    mode: 'strict',
    skips: true,
  },
  { name: 'latest: a redrive by the command beside a later number', mode: 'latest' },
];

const ORDERS = { strict: strict(), latest: latest() };

const RAN = { PK: 'STATE#1', SK: 'STATE' };

/** Stores that number 1 ran. */
const handler = transactional(Numbered, async ({ sequence }) => ({
  writes: sequence === 1 ? [{ Put: { Item: { ...RAN } } }] : [],
}));

/** The longest that a queue takes to come to rest, in receives. */
const REST_RECEIVES = 60;

/** The looks of a redrive at its message. */
const LOOKS = 2;

/** Number 1 was rejected, and is redriven by the command, as scenarios. */
export function redriveScenarios(bounds: Bounds, tamper: RedriveTamper = {}): Scenario[] {
  return SETTINGS.map((setting) => scenarioOf(setting, bounds, tamper));
}

function scenarioOf(
  { name, mode, skips = false }: Setting,
  { budget }: Bounds,
  tamper: RedriveTamper,
): Scenario {
  return {
    name: `inbox: ${name}`,
    budget,
    begin: async (scheduler) => {
      const world = await consumerWorld(scheduler, {
        event: numbered(1),
        others: skips ? [] : [numbered(2)],
        handler: () => handler,
        items: rejectedRows,
        maxReceiveCount: REST_RECEIVES,
        config: { order: ORDERS[mode], maxReceives: REST_RECEIVES },
      });
      const [first] = world.queue.messages();
      const letter = { body: first?.body ?? '', isDeleted: false };
      for (const { receiptHandle } of world.queue.receive(1)) world.queue.delete(receiptHandle);
      const command: Command = { world, mode, letter, now: () => scheduler.now(), tamper };
      void world.work(scheduler.actor('worker'), 1);
      void redrive(command, scheduler.actor('redrive'));
      if (skips) void skip(command, scheduler.actor('operator'));

      async function rest(last: Actor): Promise<void> {
        await world.work(last, REST_RECEIVES);
        for (let times = 0; times < LOOKS; times += 1) {
          await redrive(command, last);
          await world.work(last, REST_RECEIVES);
        }
      }

      return {
        ...world,
        state: (left) => `${world.state(left)} ${letter.isDeleted}`,
        settle: (again) => void rest(again.actor('rest')),
        verdict: () => verdict(command),
      };
    },
  };
}

/** The parts of an operator's command. */
interface Command {
  readonly world: ConsumerWorld;
  readonly mode: Setting['mode'];
  /** The dead letter of number 1. */
  readonly letter: { readonly body: string; isDeleted: boolean };
  /** The true time, epoch milliseconds. */
  readonly now: () => number;
  readonly tamper: RedriveTamper;
}

/** The problems at the end: a message that did not run must still have its dead letter, and one that did must have none. */
function verdict({ world: { memory, queue }, letter }: Command): string | undefined {
  const ran = memory.item(RAN) !== undefined;
  if (letter.isDeleted && !ran) return 'The dead letter of a message that never ran was deleted';
  if (ran && !letter.isDeleted) return 'The dead letter of a message that ran is left';
  return queue.messages().length > 0 ? 'A message is left in the queue' : undefined;
}

async function skip({ world, now }: Command, operator: Actor): Promise<void> {
  await operator.step('looks at the sequence', () => {}); // which may be at any time
  const { consumer } = world.config;
  const of = {
    consumer,
    source: 'things',
    group: STRICT_GROUP,
    aggregateType: 'Thing',
    aggregateId: 'thing-1',
  };
  const desk = deskOf(operator, world.tableOf(operator), now);
  const place = { key: lastKey(of).PK, sequence: 1 };
  await operator.invoke(60_000, () => skipSequence(desk, place, { by: 'ada', reason: 'not needed' }));
}

/** The redrive of the dead letter, which may crash at any of its calls. */
async function redrive(command: Command, operator: Actor): Promise<void> {
  const { world, mode, letter, now, tamper } = command;
  const { eventId, config, queue } = world;
  const desk = deskOf(operator, world.tableOf(operator), now);
  const consumer = {
    ...{ name: 'worker', queue: 'queue', inboxRetentionDays: config.inboxRetentionDays },
    ...{ events: [{ ...Numbered, sequence: true }], order: orderText(ORDERS[mode]) },
  } as Partial<ConsumerEntry> as ConsumerEntry;
  const source = { name: 'consumer:worker', kind: 'consumer', url: 'dead letters', consumer } as const;
  const remove = async () => {
    letter.isDeleted = true;
  };
  const queues = {
    send: (_url, text) =>
      operator.call({ label: 'redrive the message', perform: async () => queue.send(text), effect: true }),
    remove: () => operator.call({ label: 'delete the dead letter', perform: remove, effect: true }),
  } as Partial<Queues> as Queues;
  await operator.step('receives the dead letters', () => {}); // which may be at any time
  if (letter.isDeleted) return;
  await operator.invoke(60_000, async () => {
    const message = { messageId: 'm', receiptHandle: 'r', body: letter.body, sentAt: 0, attributes: {} };
    const deadLetter: DeadLetter = {
      ...{ id: 'm', eventId, type: undefined, sentAt: 0, expiresAt: undefined },
      ...{ fingerprint: undefined, lastError: undefined, received: message },
      ...(await readStanding(dynamoRows(desk.table), 'worker', eventId)),
    };
    const check = async () => [{ ok: true, eventId, type: Numbered.type } as const];
    const deps = { table: desk.table, check, now: now() };
    const [plain] = await judgeDeadLetters(withStored(deps), source, [deadLetter]);
    const judged = plain && (tamper.judged?.(plain) ?? plain);
    if (judged?.verdict === 'handled') await queues.remove(source.url, message);
    if (judged?.verdict !== 'runs') return;
    const redriver = queueRedriver(withStored({ ...desk, queues }), source, { by: 'ada', reason: 'fixed' });
    await redriver.resend(judged);
    for (let look = 0; look < LOOKS; look += 1) {
      const progress = await redriver.look(judged);
      const seen = tamper.progress?.(progress) ?? progress;
      if (seen.state === 'done' && progress.state !== 'done') await queues.remove(source.url, message);
      if (seen.state !== 'waiting') return;
      await operator.clock.sleep(1_000);
    }
  });
}
