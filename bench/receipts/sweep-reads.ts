import { createRelaySweep } from '../../lambdas/runtime/relay/relay-sweep.ts';
import { MINUTE_MS, SWEEP_AGES_MINUTES } from '../../lambdas/runtime/relay/sweep-minutes.ts';
import { mintEventId, mintToken, minuteOf, outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import { itemBytes } from '../../lambdas/runtime/store/item-size.ts';
import { OUTBOX_PREFIX, SCHEMA, SWEEP_STATE_KEY } from '../../lambdas/runtime/store/rows.ts';
import { type Item, UPDATE_EACH_MAX } from '../../lambdas/runtime/store/table.ts';
import { chunks } from '../alternatives/queue-delivery.ts';
import { createReceipt } from '../alternatives/receipts.ts';
import { START } from '../alternatives/workload.ts';
import { jumpingClock } from '../aws/jumping-clock.ts';
import { createMeteredAws } from '../aws/metered-aws.ts';
import { usageOf } from '../cost/measure.ts';
import { fixedRandom, RELAY_CONFIG, TABLE } from '../cost/settings.ts';
import { outboxSide, partsOf, type Variant } from './outbox-side.ts';

/** What is read of published events. */
export interface SweepReads {
  /** Read units of one event, over the six times that the sweep reads it. */
  readonly readUnits: number;
  /** KB that DynamoDB hands to the sweep for it: what its filter does not leave out. */
  readonly handedKb: number;
  /** Read units of one call that claims 25 events which are published: they came again. */
  readonly claimReadUnits: number;
}

/** Has the real sweep read a minute in which all was published by the stream path. */
export async function sweepReads(
  variant: Variant,
  payloadBytes: number,
  eventsPerSecond: number,
): Promise<SweepReads> {
  const events = (eventsPerSecond * MINUTE_MS) / 1_000;
  const minute = publishedMinute(variant, await publishedRow(variant, payloadBytes), events);
  const full = await sweepPass(variant, minute);
  const empty = await sweepPass(variant, []);
  const perEvent = (figure: number) => (figure * SWEEP_AGES_MINUTES.length) / events;
  return {
    readUnits: perEvent(full.readUnits - empty.readUnits),
    handedKb: perEvent(full.handedBytes / 1_000),
    claimReadUnits: await claimAgain(variant, minute),
  };
}

/** A row as the stream path leaves it. */
async function publishedRow(variant: Variant, payloadBytes: number): Promise<Item> {
  const aws = newAws([]);
  await outboxSide(variant).run(aws, { events: 1, payloadBytes, consumers: 0, retries: 0, batchSize: 1 });
  const row = aws.items(TABLE).find(({ PK }) => String(PK).startsWith(OUTBOX_PREFIX));
  if (row) return row;
  throw new Error('There is no outbox row');
}

/** The rows of a minute that has come to its first age, and their receipts. */
function publishedMinute({ bornDays }: Variant, row: Item, events: number): Item[] {
  const random = fixedRandom();
  const minute = Math.floor(START / MINUTE_MS) * MINUTE_MS - 2 * MINUTE_MS;
  const eventIds = Array.from({ length: events }, (_, n) =>
    mintEventId(minute + Math.floor((n * MINUTE_MS) / events), RELAY_CONFIG.shards, random),
  );
  const rows = eventIds.map((eventId) => ({ ...row, ...outboxKeyOf(eventId) }));
  if (bornDays === undefined) return rows;
  const receipts = chunks(eventIds, UPDATE_EACH_MAX).map((ids) =>
    createReceipt(minuteOf(minute), mintToken(random), ids, START, bornDays),
  );
  return [...rows, ...receipts.map((receipt) => ({ ...receipt }))];
}

async function sweepPass(variant: Variant, items: readonly Item[]) {
  const sweptTo = START - MINUTE_MS;
  const state = { ...SWEEP_STATE_KEY, schema: SCHEMA, sweptTo, shards: RELAY_CONFIG.shards };
  const aws = newAws([state, ...items]);
  let handedBytes = 0;
  const parts = partsOf(aws, variant, (page) => {
    for (const item of page) handedBytes += itemBytes(item);
  });
  const { complete, published } = await createRelaySweep(parts).pass(START + MINUTE_MS);
  if (!complete || published > 0) throw new Error('The sweep did not find its minute published');
  return { readUnits: usageOf(aws.requests()).readUnits, handedBytes };
}

async function claimAgain(variant: Variant, minute: readonly Item[]): Promise<number> {
  const aws = newAws(minute);
  const claims = minute.slice(0, UPDATE_EACH_MAX).map(({ PK, SK, leaseUntil }) => ({
    key: { PK: String(PK), SK: String(SK) },
    set: { leaseUntil: START },
    when: { status: 'PENDING', leaseUntil },
  }));
  const results = await partsOf(aws, variant).table.updateEach(claims);
  if (results.some(({ ok }) => ok)) throw new Error('A published event was claimed');
  return usageOf(aws.requests()).readUnits;
}

function newAws(items: readonly Item[]) {
  const aws = createMeteredAws([{ name: TABLE, keys: ['PK', 'SK'] }], { clock: jumpingClock(START) });
  aws.seed(TABLE, items);
  return aws;
}
