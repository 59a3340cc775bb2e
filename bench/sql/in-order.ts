import type { FigureTable } from '../part.ts';
import type { BenchDatabase, BenchServer } from './database.ts';
import { BUS_MS, fill, percentile, slowBus } from './events.ts';

/** A relay with and without `orderBy: 'aggregate'`. */
export interface InOrder {
  readonly orderBy: 'aggregate' | null;
  /** Events of as many aggregates that were published a second. */
  readonly perSecond: number;
  /** Events of one aggregate that wait. */
  readonly waiting: number;
  /** The time in which a claim puts 100 of them off, milliseconds; `null` for a relay that claims them all at once. */
  readonly parkMs: number | null;
  /** The time of a claim once the others are put off, milliseconds. */
  readonly claimMs: number | null;
  /** Events of this one aggregate that were published a second. */
  readonly ofOnePerSecond: number | null;
}

/** The number of events of many aggregates that are published, of those of one that wait, and of these that are published. */
interface OrderSizes {
  readonly drained: number;
  readonly waiting: number;
  readonly ofOne: number;
}

/** The sizes of a full and of a quick run. */
export const ORDER_SIZES: Readonly<Record<'full' | 'quick', OrderSizes>> = {
  full: { drained: 20_000, waiting: 100_000, ofOne: 1_000 },
  quick: { drained: 1_000, waiting: 1_000, ofOne: 50 },
};

const CLAIMS = 200;

/** Publishes a backlog of many aggregates, and one of a single aggregate. */
export async function inOrder(
  create: (name: string) => Promise<BenchDatabase>,
  { drained, waiting, ofOne }: OrderSizes,
): Promise<InOrder[]> {
  const perSecond: number[] = [];
  for (const orderBy of [undefined, 'aggregate'] as const) {
    const database = await create(`in_order_${orderBy ?? 'none'}`);
    await fill(database, drained);
    const beganAt = performance.now();
    await database.relayOf(slowBus(BUS_MS), { orderBy }).pass();
    perSecond.push(Math.round(drained / ((performance.now() - beganAt) / 1_000)));
    await database.close();
  }
  const database = await create('in_order_one');
  await fill(database, waiting, () => 'hot');
  const { claim, countPutOff, putOff, makeFirstDue } = database.inOrder();
  await claim(1);
  const before = await countPutOff();
  const [parkMs = Number.NaN] = await timed(1, () => claim(100));
  const parks = ((await countPutOff()) - before) / 100;
  await putOff();
  const claims = await timed(CLAIMS, () => claim(100));
  await makeFirstDue();
  const relay = database.relayOf(slowBus(0), { orderBy: 'aggregate' });
  let count = 0;
  const beganAt = performance.now();
  while (count < ofOne) count += (await relay.pass()).published;
  const seconds = (performance.now() - beganAt) / 1_000;
  await database.close();
  const [plain = Number.NaN, ordered = Number.NaN] = perSecond;
  return [
    { orderBy: null, perSecond: plain, waiting, parkMs: null, claimMs: null, ofOnePerSecond: null },
    {
      orderBy: 'aggregate',
      perSecond: ordered,
      waiting,
      parkMs: Math.round(parkMs / parks),
      claimMs: percentile(claims, 0.5),
      ofOnePerSecond: Math.round(count / seconds),
    },
  ];
}

async function timed(times: number, call: () => Promise<unknown>): Promise<number[]> {
  const taken: number[] = [];
  for (let n = 0; n < times; n += 1) {
    const beganAt = performance.now();
    await call();
    taken.push(performance.now() - beganAt);
  }
  return taken;
}

/** The measurements as a table. */
export function inOrderTable({ name, title }: BenchServer, measured: readonly InOrder[]): FigureTable {
  return {
    name: `${name}-in-order`,
    title: `A relay of ${title} that publishes the events of an aggregate one after another`,
    head: [
      'orderBy',
      'events/s of many aggregates',
      'waiting of one',
      'put off 100, ms',
      'claim, ms',
      'events/s of one',
    ],
    rows: measured.map((one) => [
      one.orderBy ?? 'none',
      one.perSecond,
      one.waiting,
      one.parkMs ?? '',
      one.claimMs ?? '',
      one.ofOnePerSecond ?? '',
    ]),
  };
}
