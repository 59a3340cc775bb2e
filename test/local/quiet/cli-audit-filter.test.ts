import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { z } from 'zod/mini';
import { defineEvent, transactional } from '../../../lambdas/runtime/index.ts';
import { lambdaContext } from '../../../testing/index.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { eventually } from '../support/eventually.ts';
import { handmadeMailroom, SMALL_SOURCE, type SmallConsumer } from '../support/handmade-mailroom.ts';
import { mailroom } from '../support/mailroom.ts';
import { smallFunction } from '../support/small-function.ts';

const Shipped = defineEvent({
  source: SMALL_SOURCE,
  type: 'Shipped',
  version: 1,
  aggregateType: 'Order',
  schema: z.object({ country: z.string(), totalCents: z.number() }),
});

/** No other test uses this region. */
const REGION = 'eu-central-2';

const filter = { country: ['CH', 'NO'], totalCents: [{ numeric: ['>=', 10_000] }] };

let small: Awaited<ReturnType<typeof handmadeMailroom>>;
let customs: SmallConsumer;

beforeAll(async () => {
  const events = [{ source: SMALL_SOURCE, type: 'Shipped', filter }];
  small = await handmadeMailroom(inject('endpoint'), REGION, ['customs'], events);
  const [consumer] = small.consumers;
  if (consumer === undefined) throw new Error('There is no consumer');
  customs = consumer;
});

afterAll(() => small.remove());

/** Audits without waiting minutes for events that may be on their way, or for the consumer's declaration. */
const audit = async () => {
  const { code, json } = await mailroom(
    ...['audit', '--json', '--earlier', '--grace', '1s', '--region', REGION, '--stack', small.stack],
  );
  return { code, report: json() };
};

const ship = (...parcels: readonly (readonly [string, number])[]) =>
  small.publish(
    ...parcels.map(([country, totalCents]) =>
      Shipped.create({ aggregateId: country, data: { country, totalCents } }),
    ),
  );

/** Lets the consumer process what its queue holds. @returns the events that it received */
async function handle(): Promise<unknown[]> {
  const received: unknown[] = [];
  const handler = smallFunction(small, customs, [
    transactional(Shipped, async ({ eventId }) => {
      received.push(eventId);
      return { writes: [] };
    }),
  ]);
  expect(await handler(await customs.take(), lambdaContext())).toEqual({ batchItemFailures: [] });
  return received;
}

test('a consumer receives the events that its filter matches, and the audit and why expect exactly those', async () => {
  const [wanted, cheap, domestic] = await ship(['CH', 10_000], ['CH', 9_999], ['DE', 10_000]);
  const received = await eventually(async () => {
    const found = await handle();
    expect(found).not.toEqual([]);
    return found;
  });
  expect(received).toEqual([wanted?.eventId]);
  await eventually(async () => {
    const { code, report } = await audit();
    expect(report).toMatchObject({ events: 3, consumers: { customs: { expected: 1, processed: 1 } } });
    expect(code).toBe(0);
  });
  for (const skipped of [cheap, domestic]) {
    const options = ['--region', REGION, '--stack', small.stack];
    const { code, out } = await mailroom('why', skipped?.eventId ?? '', ...options);
    expect(unwrapped(out)).toContain('published. No consumer subscribes to it, or only with a filter');
    expect(code).toBe(0);
  }

  const [lost] = await ship(['NO', 20_000], ['NO', 1]);
  await customs.purge();
  await eventually(async () => {
    const { code, report } = await audit();
    expect(report).toMatchObject({ events: 5, missing: [{ eventId: lost?.eventId, consumer: 'customs' }] });
    expect(code).toBe(1);
  });
});
