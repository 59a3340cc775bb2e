import type { System } from './alternatives/system.ts';
import { PRICES } from './assumptions.ts';
import { MAILROOM } from './cost/mailroom.ts';
import { type Dollars, lambdaMs, measure, total, usdPerMillion } from './cost/measure.ts';
import type { FigureTable, Part } from './part.ts';
import { outboxSide, type Variant } from './receipts/outbox-side.ts';
import { type SweepReads, sweepReads } from './receipts/sweep-reads.ts';

/** Rows with a receipt are kept as long as PUBLISHED ones by default, or as long as inbox rows. */
const VARIANTS: readonly Variant[] = [
  { name: 'marks' },
  { name: 'receipts, rows expire after 7 days', bornDays: 7 },
  { name: 'receipts, rows expire after 35 days', bornDays: 35 },
];

const PAYLOADS = [200, 1_024, 4_096] as const;

/** How many records the stream handler is given; prices are those of the first. */
const BATCHES = [100, 10, 1] as const;
const QUICK_BATCHES = [10] as const;

/** The rate at which the sweep is measured. */
const EVENTS_PER_SECOND = 1_000;
const QUICK_EVENTS_PER_SECOND = 1;

/** What one event comes to. */
interface Found extends Variant {
  readonly payloadBytes: number;
  /** Write units of the outbox side. */
  readonly writeUnits: readonly { readonly batchSize: number; readonly units: number }[];
  readonly sweep: SweepReads;
  /** US dollars a million events: of stored outbox rows and receipts, and of what the sweep reads. */
  readonly storageUsd: number;
  readonly sweepUsd: number;
  /** From the commit to PROCESSED at one consumer, and the sweep. */
  readonly wholeUsd: number;
}

/** One run of a system. */
interface Measured {
  readonly batchSize: number;
  readonly units: number;
  readonly usd: Dollars;
}

/** Receipts instead of marks: see docs/adr/0011-published-events-are-marked-one-by-one.md. */
export const receipts: Part = {
  name: 'receipts',
  title: 'marks gathered into receipts: what that would save, and what it costs',
  run: async ({ say, quick }) => {
    const found: Found[] = [];
    for (const payloadBytes of PAYLOADS) {
      say(`${payloadBytes} B`);
      found.push(...(await compare(payloadBytes, quick)));
    }
    return { json: { receipts: found }, tables: [priceTable(found), sweepTable(found)] };
  },
};

async function compare(payloadBytes: number, quick: boolean): Promise<Found[]> {
  const batches = quick ? QUICK_BATCHES : BATCHES;
  const eventsPerSecond = quick ? QUICK_EVENTS_PER_SECOND : EVENTS_PER_SECOND;
  const measured = async (system: System, batchSize: number, handed: number): Promise<Measured> => {
    const workload = { events: batches[0], payloadBytes, consumers: 1, retries: 0, batchSize };
    const { whole } = await measure(system, workload);
    return { batchSize, units: whole.writeUnits, usd: usdPerMillion(whole, lambdaMs(whole, handed)) };
  };
  const whole = await measured(MAILROOM.transactional, batches[0], 2);
  const marked = await measured(outboxSide({ name: 'marks' }), batches[0], 1);
  const consuming = total(whole.usd) - total(marked.usd);
  const found: Found[] = [];
  for (const variant of VARIANTS) {
    const sweep = await sweepReads(variant, payloadBytes, eventsPerSecond);
    const runs: Measured[] = [];
    for (const batchSize of batches) runs.push(await measured(outboxSide(variant), batchSize, 1));
    const writeUnits = runs.map(({ batchSize, units }) => ({ batchSize, units }));
    const { usd } = runs[0] ?? marked;
    const sweepUsd = cents(sweep.readUnits * PRICES.readUnitsPerMillion);
    const wholeUsd = cents(consuming + total(usd) + sweepUsd);
    found.push({
      ...variant,
      payloadBytes,
      writeUnits,
      sweep,
      storageUsd: cents(usd.storage),
      sweepUsd,
      wholeUsd,
    });
  }
  return found;
}

function priceTable(found: readonly Found[]): FigureTable {
  const batches = found[0]?.writeUnits.map(({ batchSize }) => `units, batches of ${batchSize}`) ?? [];
  return {
    name: 'receipts',
    title: 'Receipts instead of marks: write units of the outbox side, and US dollars a million events',
    head: ['payload', 'what was published is kept as', ...batches, 'storage', 'sweep', 'whole', 'saved'],
    rows: found.map(({ name, payloadBytes, writeUnits, storageUsd, sweepUsd, wholeUsd }) => {
      const marked = found.find((other) => other.payloadBytes === payloadBytes)?.wholeUsd ?? wholeUsd;
      return [
        bytesText(payloadBytes),
        name,
        ...writeUnits.map(({ units }) => units.toFixed(2)),
        ...[storageUsd, sweepUsd, wholeUsd].map((usd) => usd.toFixed(2)),
        `${(100 * (1 - wholeUsd / marked)).toFixed(1)} %`,
      ];
    }),
  };
}

function sweepTable(found: readonly Found[]): FigureTable {
  return {
    name: 'receipts-sweep',
    title: 'What the sweep reads of an event in all; and one call that claims 25 published events again',
    head: [
      'payload',
      'what was published is kept as',
      'read units',
      'KB handed over',
      'read units of the call',
    ],
    rows: found.map(({ name, payloadBytes, sweep }) => [
      bytesText(payloadBytes),
      name,
      sweep.readUnits.toFixed(3),
      sweep.handedKb.toFixed(2),
      sweep.claimReadUnits,
    ]),
  };
}

/** As exact as prices are looked at: hundredths of a cent. */
function cents(usd: number): number {
  return Number(usd.toFixed(4));
}

function bytesText(bytes: number): string {
  return `${bytes.toLocaleString('en-US')} B`;
}
