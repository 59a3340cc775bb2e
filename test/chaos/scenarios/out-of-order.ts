import type { Envelope } from '../../../lambdas/runtime/index.ts';
import { mintEventId } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import type { DeployedConsumer, OrderedConsumer } from '../extra-consumers.ts';
import { drawKills, randomNumbers } from '../kill-plan.ts';
import { AccountChanged, accountKey } from '../ordered.handler.ts';
import { killByPlan, momentsOf } from '../planned-kills.ts';
import type { Counts, Scenario } from '../scenario.ts';
import type { Stage } from '../stage.ts';

const ACCOUNTS = 6;

/** The events of each account: 1, 2, 3 and so on. */
const EVENTS = 5;

/** Messages of each event. */
const COPIES = 2;

/** The longest delay of a message, seconds. */
const DELAY_MAX_S = 4;

const KILLS_EACH = 2;

/** Among how many of its first commits the fatal ones of each are drawn: `profile` has at least one for each account. */
const VICTIMS: Readonly<Record<OrderedConsumer, number>> = { ledger: 12, profile: ACCOUNTS };

const CONSUMERS = Object.keys(VICTIMS) as OrderedConsumer[];

/** The events of accounts are delivered in any order, late and twice, to a strict and a latest consumer whose workers are killed. */
export const outOfOrder: Scenario = {
  name: 'out-of-order',
  title:
    'events of one account are delivered shuffled, late and twice to ordered consumers, whose processes are killed',
  run: async (stage) => {
    const { seed } = stage.settings;
    const deployed = [await stage.deployExtra('ledger'), await stage.deployExtra('profile')];
    const killed = killByPlan(stage, drawKills({ seed, victims: VICTIMS, each: KILLS_EACH }), {
      action: 'TransactWriteItems',
    });
    const waits = stage.fault({ from: 'ledger', action: 'ChangeMessageVisibility' }, (_, forward) =>
      forward(),
    );
    const events = eventsOf(stage.runId);
    const isFirst = ({ sequence }: Numbered) => sequence === 1;
    const deliver = deliveryTo(deployed, seed);

    stage.step(
      `${ACCOUNTS} accounts have ${EVENTS} events each; all but the first are delivered, shuffled and ${COPIES} times (seed ${seed})`,
    );
    await deliver(
      events.filter((event) => !isFirst(event)),
      COPIES,
    );
    const applied = async (consumer: OrderedConsumer) =>
      [...(await appliedBy(stage, consumer, events)).values()].flat().length;
    await stage.until('profile applies an event, and ledger has received one', async () => {
      const [early, tooEarly] = [await applied('profile'), await applied('ledger')];
      return early > 0 && (waits.hits > 0 || tooEarly > 0);
    });
    const tooEarly = await applied('ledger');
    stage.check(tooEarly === 0, `ledger waits for the first events: it has applied ${tooEarly}`);

    stage.step('The first events are delivered, last');
    await deliver(events.filter(isFirst), COPIES);
    await settled(stage, deployed, events);
    stage.step(
      `All are processed; ${killed.length} processes were killed at their commits. Every event is delivered again`,
    );
    await deliver(events, 1);
    await settled(stage, deployed, events);
    for (const victim of CONSUMERS)
      stage.check(
        killed.some((one) => one.victim === victim),
        momentsOf(killed, victim),
      );
    const dead = (await Promise.all(deployed.map(({ depths }) => depths()))).reduce(
      (n, depth) => n + depth.dead,
      0,
    );
    stage.check(dead === 0, `${dead} dead letters; ledger put messages back ${waits.hits} times`);
    return countApplied(stage, events);
  },
};

type Numbered = Envelope & { readonly sequence: number };

function eventsOf(runId: string): readonly Numbered[] {
  const { type, version, aggregateType } = AccountChanged;
  return Array.from({ length: ACCOUNTS * EVENTS }, (_, n) => {
    const occurredAt = Date.now();
    const eventId = mintEventId(occurredAt, 8);
    const aggregateId = `${runId}-account-${n % ACCOUNTS}`;
    const sequence = 1 + Math.floor(n / ACCOUNTS);
    const data = {};
    return {
      eventId,
      type,
      version,
      aggregateType,
      aggregateId,
      occurredAt,
      correlationId: eventId,
      sequence,
      data,
    };
  });
}

/** Delivers copies of events to every consumer, in an order and with delays of the seed. */
function deliveryTo(consumers: readonly DeployedConsumer[], seed: number) {
  const random = randomNumbers(seed);
  return async (events: readonly Numbered[], copies: number): Promise<void> => {
    for (const { send } of consumers) {
      const drawn = Array.from({ length: copies }, () => events).flat();
      const shuffled = drawn.map((event) => ({ event, lot: random() })).toSorted((a, b) => a.lot - b.lot);
      await send(shuffled.map(({ event }) => ({ event, delayS: Math.floor(random() * (DELAY_MAX_S + 1)) })));
    }
  };
}

/** Waits until every event is PROCESSED by both consumers and their queues are empty, or the time is nearly up. */
function settled(
  stage: Stage,
  consumers: readonly DeployedConsumer[],
  events: readonly Numbered[],
): Promise<boolean> {
  return stage.until('the consumers have settled', async () => {
    const depths = await Promise.all(consumers.map(({ depths }) => depths()));
    const isEmpty = depths.every(({ queued }) => queued === 0);
    return !stage.isTimeLeft() || (isEmpty && (await unprocessed(stage, events)) === 0);
  });
}

/** The messages that are not PROCESSED, of both consumers. */
async function unprocessed({ system }: Stage, events: readonly Numbered[]): Promise<number> {
  const keys = CONSUMERS.flatMap((consumer) => events.map(({ eventId }) => inboxKey(consumer, eventId)));
  const rows = await Promise.all(keys.map(async ({ PK }) => system.rows(PK)));
  return rows.filter((found) => !found.some(({ status }) => status === 'PROCESSED')).length;
}

/** The numbers that a consumer has applied to each account, in the order in which it has. */
async function appliedBy(
  { system }: Stage,
  consumer: OrderedConsumer,
  events: readonly Numbered[],
): Promise<ReadonlyMap<string, readonly number[]>> {
  const accounts = [...new Set(events.map(({ aggregateId }) => aggregateId))];
  const rows = accounts.map(async (account) => {
    const [row] = await system.rows(accountKey(consumer, account).PK);
    return [account, (row?.applied ?? []) as number[]] as const;
  });
  return new Map(await Promise.all(rows));
}

/** Lost: numbers that `ledger` has not applied, and accounts whose newest event `profile` has not; duplicated: numbers applied again. */
async function countApplied(stage: Stage, events: readonly Numbered[]): Promise<Counts> {
  const ledger = [...(await appliedBy(stage, 'ledger', events)).values()];
  const profile = [...(await appliedBy(stage, 'profile', events)).values()];
  const isIncreasing = (numbers: readonly number[]) =>
    numbers.every((number, i) => i === 0 || number > (numbers[i - 1] as number));
  stage.check(
    ledger.every(isIncreasing),
    `ledger applied ${ledger.map((numbers) => numbers.join(' ')).join(' | ')}`,
  );
  stage.check(
    profile.every(isIncreasing),
    `profile applied ${profile.map((numbers) => numbers.join(' ')).join(' | ')}`,
  );
  const superseded = events.length - profile.flat().length;
  stage.check(superseded > 0, `profile absorbed ${superseded} superseded events`);
  const unread = await unprocessed(stage, events);
  stage.check(unread === 0, `${unread} messages are not PROCESSED`);
  const distinct = (lists: readonly (readonly number[])[]) =>
    lists.reduce((sum, list) => sum + new Set(list).size, 0);
  const behind = profile.filter((numbers) => numbers.at(-1) !== EVENTS).length;
  return {
    lost: events.length - distinct(ledger) + behind,
    duplicated: ledger.flat().length - distinct(ledger) + (profile.flat().length - distinct(profile)),
  };
}
