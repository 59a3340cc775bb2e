import type { SteadyLoad, System } from './alternatives/system.ts';
import { ALTERNATIVES } from './alternatives/systems.ts';
import { jumpingClock, type Workload } from './alternatives/workload.ts';
import { MINUTES_PER_MONTH } from './assumptions.ts';
import { createMeteredAws } from './aws/metered-aws.ts';
import { LARGE_PAYLOADS, LIMIT_REACHED, MAILROOM, ORDER_AND_TIME, UNCOMPRESSED } from './cost/mailroom.ts';
import { lambdaMs, measure, total, usageOf, usdPerMillion } from './cost/measure.ts';
import {
  casesTable,
  LARGE,
  type Measured,
  orderTable,
  outboxName,
  PAYLOADS,
  payloadTable,
  priceTable,
  type StandingCost,
  servicesTable,
  standingTable,
  stepsTable,
  usdPerMillionEvents,
} from './cost/tables.ts';
import type { Part } from './part.ts';

/** The systems to compare. */
const SYSTEMS: readonly System[] = [...Object.values(MAILROOM), UNCOMPRESSED, ...ALTERNATIVES];

/** One batch of the relay: the cost is proportional to the number of batches. */
const BATCH: Workload = { events: 100, payloadBytes: PAYLOADS[0], consumers: 1, retries: 0, batchSize: 100 };
/** One batch of a consumer, and 2.5 MB of payloads. */
const LARGE_BATCH: Workload = { ...BATCH, events: 10, batchSize: 10 };
const QUICK_BATCH: Workload = { ...BATCH, events: 5, batchSize: 5 };

/** Events that come alone, as at low rates, failures and more consumers, for each payload. */
const OTHER_CASES: readonly Workload[] = PAYLOADS.flatMap((payloadBytes) => [
  { ...BATCH, payloadBytes, events: 1, batchSize: 1 },
  { ...BATCH, payloadBytes, retries: 1 },
  { ...BATCH, payloadBytes, consumers: 3 },
  { ...BATCH, payloadBytes, consumers: 3, retries: 1 },
]);

/** The rates and payloads at which the standing cost is measured. */
const STANDING: readonly SteadyLoad[] = [
  { eventsPerSecond: 0, payloadBytes: 300 },
  { eventsPerSecond: 1_000, payloadBytes: 300 },
  { eventsPerSecond: 1_000, payloadBytes: 1_024 },
];

/** Measures the cost of an event: requests and units are counted, prices and function times are computed. */
export const cost: Part = {
  name: 'cost',
  title: 'requests, units and dollars per event, compared with alternatives',
  run: async ({ say, quick }) => {
    say('one consumer, no failures');
    const plain = await plainRuns(SYSTEMS, quick ? QUICK_BATCH : BATCH);
    say('ordered consumers, scheduled events and bridges');
    const ordered = await plainRuns(ORDER_AND_TIME, quick ? QUICK_BATCH : BATCH);
    say('large payloads');
    const large = await plainRuns(LARGE_PAYLOADS, quick ? QUICK_BATCH : LARGE_BATCH, LARGE);
    const limited = await plainRuns([LIMIT_REACHED], quick ? QUICK_BATCH : BATCH);
    const cases: Measured[] = [];
    for (const workload of quick ? [] : OTHER_CASES) {
      const { payloadBytes, consumers, retries, batchSize } = workload;
      say(`${payloadBytes} B, ${consumers} consumers, ${retries} % fail once, batches of ${batchSize}`);
      for (const system of SYSTEMS) cases.push(await measured(system, workload));
    }
    const standing: StandingCost[] = [];
    for (const { eventsPerSecond, payloadBytes } of STANDING) {
      const load = { payloadBytes, eventsPerSecond: quick ? Math.min(1, eventsPerSecond) : eventsPerSecond };
      say(`one minute at ${load.eventsPerSecond} events/s of ${payloadBytes} B`);
      standing.push(...(await standingRuns(load)));
    }
    return {
      json: {
        cost: [...plain, ...ordered, ...large, ...cases].map(costRecord),
        steps: [...plain, ...ordered, ...large, ...limited].flatMap(stepRecords),
        standing: standing.map(standingRecord),
      },
      tables: [
        priceTable(plain, standing),
        servicesTable(plain),
        await stepsTable(plain),
        orderTable([...plain, ...ordered]),
        payloadTable(large),
        ...(quick ? [] : [casesTable([...plain, ...cases])]),
        standingTable(standing),
      ],
    };
  },
};

/** Systems with these payloads, one consumer, and no failures. */
export async function plainRuns(
  systems: readonly System[],
  batch = BATCH,
  payloads: readonly number[] = PAYLOADS,
): Promise<Measured[]> {
  const runs: Measured[] = [];
  for (const system of systems)
    for (const payloadBytes of payloads) runs.push(await measured(system, { ...batch, payloadBytes }));
  return runs;
}

/** Runs a workload through a system, and prices it. */
export async function measured(system: System, workload: Workload): Promise<Measured> {
  const event = await measure(system, workload);
  // Functions receive each event once to relay it, if there is a relay, once more if the sweep publishes it, and once per consumer.
  const relayed = (event.steps.get('relay')?.invocations ? 1 : 0) + (event.steps.has('sweep') ? 1 : 0);
  const consumed = event.steps.has('consume') ? workload.consumers : 0;
  const usd = usdPerMillion(event.whole, lambdaMs(event.whole, relayed + consumed));
  return { system, workload, event, usd };
}

/** The standing cost of each kind of outbox, shared by the systems that use it. */
async function standingRuns(load: SteadyLoad): Promise<StandingCost[]> {
  const runs: StandingCost[] = [];
  for (const system of SYSTEMS) {
    const { standing } = system;
    if (standing === undefined || runs.some((run) => run.system.standing === standing)) continue;
    const aws = createMeteredAws(system.tables, { clock: jumpingClock() });
    const times = await standing(aws, load);
    const perMinute = usageOf(aws.requests(), 1 / times);
    const perMillion = usdPerMillion(perMinute, lambdaMs(perMinute, 0));
    const usdPerMonth = (total(perMillion) / 1_000_000) * MINUTES_PER_MONTH;
    runs.push({ system, ...load, perMinute, usdPerMonth });
  }
  return runs;
}

function costRecord({ system, workload, event, usd }: Measured) {
  const { payloadBytes, consumers, batchSize, retries, events } = workload;
  return {
    system: system.name,
    promise: system.promise,
    ...{ payloadBytes, consumers, batchSize },
    retries: retries / events,
    ...rounded({ ...event.whole, usdPerMillion: total(usd) }),
    usd: rounded(usd),
  };
}

function stepRecords({ system: { name }, workload: { payloadBytes }, event }: Measured) {
  return [...event.steps].map(([step, usage]) => ({ system: name, payloadBytes, step, ...rounded(usage) }));
}

function standingRecord(standing: StandingCost) {
  const { eventsPerSecond, payloadBytes, perMinute, usdPerMonth } = standing;
  const perMillion = usdPerMillionEvents(standing);
  return {
    outbox: outboxName(standing),
    ...{ eventsPerSecond, payloadBytes },
    ...rounded({ ...perMinute, usdPerMonth, ...(perMillion !== undefined && { usdPerMillion: perMillion }) }),
  };
}

function rounded<T extends object>(figures: T): T {
  const each = Object.entries(figures).map(([name, value]) => [name, Number((value as number).toFixed(4))]);
  return Object.fromEntries(each) as T;
}
