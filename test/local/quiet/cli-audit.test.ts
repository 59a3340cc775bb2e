import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { z } from 'zod/mini';
import { CONSUMERS } from '../../../demo/readings.ts';
import { defineEvent, transactional } from '../../../lambdas/runtime/index.ts';
import { eventIdTime } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../../lambdas/runtime/store/row-schema.ts';
import { lambdaContext } from '../../../testing/index.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { eventually } from '../support/eventually.ts';
import { handmadeMailroom, SMALL_SOURCE, type SmallConsumer } from '../support/handmade-mailroom.ts';
import { mailroom } from '../support/mailroom.ts';
import { placeOrder, settled } from '../support/order-system.ts';
import { smallFunction } from '../support/small-function.ts';

const Sold = defineEvent({
  source: SMALL_SOURCE,
  type: 'Sold',
  version: 1,
  aggregateType: 'Sale',
  schema: z.object({ sale: z.string() }),
});

/** A member of `deliveries`. */
interface DayJson {
  readonly consumer: string;
  readonly day: string;
  readonly published: number;
  readonly processed: number;
  readonly withinSlo: number | null;
  readonly rate: number;
}
const APPLY = ['--apply', '--reason', 'the rule was disabled'];

/** No other test uses this region. */
const REGION = 'eu-west-1';

describe('an audit of the order system', () => {
  test('accounts for every event of an order, and finds the rules as they were declared', async () => {
    const { orderId } = await placeOrder();
    const { events } = await settled(orderId);
    const run = await mailroom('audit', '--json');
    const report = run.json();
    expect(report).toMatchObject({ drift: [], repaired: 0 });
    expect(report.published).toBeGreaterThanOrEqual(events.length);
    const missing = report.missing.map((one: { eventId: string }) => one.eventId);
    for (const { envelope } of events) expect(missing).not.toContain(envelope.eventId);
    expect(Object.keys(report.consumers)).toEqual([...CONSUMERS].sort());
    for (const { expected, ...states } of Object.values<Record<string, number>>(report.consumers)) {
      expect(states.processed).toBeGreaterThan(0);
      expect(Object.values(states).reduce((sum, count) => sum + count, 0)).toBe(expected);
    }
    const deliveries: DayJson[] = report.deliveries;
    for (const consumer of CONSUMERS) {
      const days = deliveries.filter((one) => one.consumer === consumer);
      const processed = days.reduce((sum, day) => sum + day.processed, 0);
      expect(processed).toBe(report.consumers[consumer].processed);
      for (const { day, published, processed, withinSlo, rate } of days) {
        expect(day).toMatch(/^\d{4}-\d{2}-\d{2}$/);
        expect(rate).toBe(processed / published);
        // Only payments has an SLO.
        expect(withinSlo === null).toBe(consumer !== 'payments');
      }
    }
    expect(report.errorBudgets).toMatchObject([{ consumer: 'payments', latencyMs: 30_000, percentile: 99 }]);
  });

  test('the audit prints a table of consumers', async () => {
    const { out } = await mailroom('audit', '--since', '1m');
    expect(out).toMatch(/^consumer +expected +processed +open +missing +cannot tell$/m);
    for (const consumer of CONSUMERS) expect(out).toMatch(new RegExp(`^${consumer}( +\\d+){5}$`, 'm'));
  });

  test('audit --by day prints days and the error budget of a consumer with an SLO', async () => {
    const { orderId } = await placeOrder();
    await settled(orderId);
    const { out } = await mailroom('audit', '--by', 'day');
    expect(out).toMatch(
      /^Deliveries to payments\nday \(UTC\) +published +processed +within SLO +rate\n\d{4}(-\d\d){2}( +\d+){3} +[\d.]+ %$/m,
    );
    expect(out).toMatch(/^SLO 99 % within 30 s: \d+ late or not processed; \d+ /m);
  });

  test.each([
    [['--since', 'yesterday'], 'such as 90s, 15m, 6h or 7d'],
    [['--grace', '0s'], 'such as 90s, 15m, 6h or 7d'],
    [['--repair', '--reason', '?'], 'of 3 to 500 characters'],
    [['everything'], 'too many arguments'],
  ])('the audit refuses %j', async (options, why) => {
    const { code, err } = await mailroom('audit', ...options);
    expect({ code, err: unwrapped(err) }).toEqual({ code: 2, err: expect.stringContaining(why) });
  });
});

describe('an audit of a Mailroom', () => {
  let small: Awaited<ReturnType<typeof handmadeMailroom>>;
  let ledger: SmallConsumer;
  let mail: SmallConsumer;

  /** Runs the command on the Mailroom of this test, and waits no minutes for events that may be on their way. */
  const run = (...options: string[]) =>
    mailroom('audit', '--region', REGION, '--stack', small.stack, '--grace', '1s', ...options);
  const audit = (...options: string[]) => run('--earlier', '--json', ...options);

  afterAll(() => small.remove());

  beforeAll(async () => {
    small = await handmadeMailroom(inject('endpoint'), REGION, ['ledger', 'mail'], ['Sold']);
    const [first, second] = small.consumers;
    if (first === undefined || second === undefined) throw new Error('There are no consumers');
    [ledger, mail] = [first, second];
  });

  afterEach(async () => {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
    await ledger.enableRule();
    for (const consumer of small.consumers) await handle(consumer);
  });

  /** Lets a consumer work on what its queue holds, as its function would. @returns how many messages it was given */
  async function handle(consumer: SmallConsumer): Promise<number> {
    const { name } = consumer.entry;
    const count = transactional(Sold, async (event) => ({
      writes: [
        {
          Update: {
            Key: { PK: `SALE#${name}`, SK: event.data.sale },
            UpdateExpression: 'ADD handled :one',
            ExpressionAttributeValues: { ':one': 1 },
          },
        },
      ],
    }));
    const handler = smallFunction(small, consumer, [count]);
    const event = await consumer.take();
    expect(await handler(event, lambdaContext())).toEqual({ batchItemFailures: [] });
    return event.Records.length;
  }

  async function handled(consumer: SmallConsumer, sale: string): Promise<unknown> {
    const row = await small.table.get({ PK: `SALE#${consumer.entry.name}`, SK: sale }, { consistent: true });
    return row?.handled ?? 0;
  }

  const sell = async (sale: string) => {
    const [envelope] = await small.publish(Sold.create({ aggregateId: sale, data: { sale } }));
    if (envelope === undefined) throw new Error('Nothing was published');
    return envelope;
  };

  /**
   * Audits until the event is found missing. Each command reads the time from the Date of an answer, which is known to a
   * second, so the grace is longer here: whatever looks next finds the event missing too.
   */
  async function foundMissing(eventId: string) {
    return eventually(async () => {
      const run = await audit('--grace', '3s');
      const missing = run.json().missing.filter((one: { eventId: string }) => one.eventId === eventId);
      expect(missing).not.toEqual([]);
      return { code: run.code, report: run.json(), missing };
    });
  }

  test('names the event that one consumer missed while its rule was disabled, and a repair lets just that one process it, once', async () => {
    await ledger.disableRule();
    const sale = randomUUID();
    const { eventId, type } = await sell(sale);
    await handle(mail);

    const { code, report, missing } = await foundMissing(eventId);
    expect(code).toBe(1);
    expect(missing).toEqual([
      { eventId, type, consumer: 'ledger', publishedAt: expect.any(Number), resentAt: null, row: null },
    ]);
    expect(report.drift).toMatchObject([{ consumer: 'ledger', problem: 'rule-disabled' }]);
    await ledger.enableRule();

    const repair = await audit('--repair', ...APPLY);
    expect({ code: repair.code, repaired: repair.json().repaired }).toEqual({ code: 0, repaired: 1 });
    // Not handled yet: a second repair finds it in the queue, for all it knows, and sends nothing.
    const again = (await audit('--repair', ...APPLY)).json();
    expect(again).toMatchObject({ repaired: 0, consumers: { ledger: { missing: 0 } } });
    expect(again.consumers.ledger.waiting + again.consumers.ledger.inconclusive).toBe(1);

    expect(await handle(ledger)).toBe(1);
    expect(await handle(mail)).toBe(0);
    expect([await handled(ledger, sale), await handled(mail, sale)]).toEqual([1, 1]);
    const after = await audit();
    expect(after).toMatchObject({ code: 0, err: '' });
    expect(after.json()).toMatchObject({ missing: [], drift: [] });
  });

  test('the audit names events that were purged from a queue; the repair sends them, and a duplicate is absorbed', async () => {
    const sale = randomUUID();
    const { eventId } = await sell(sale);
    const [delivered] = await eventually(async () => {
      const { Records } = await mail.take();
      expect(Records).toHaveLength(1);
      return Records;
    });
    await handle(ledger);

    const { missing } = await foundMissing(eventId);
    expect(missing).toMatchObject([{ consumer: 'mail' }]);
    expect((await audit('--repair', ...APPLY)).json().repaired).toBe(1);
    const { Records } = await mail.take();
    const [repaired] = Records.map(({ body }) => JSON.parse(body));
    const original = JSON.parse(delivered?.body ?? '');
    expect(repaired).toEqual({ ...original, id: expect.any(String), time: expect.any(String) });
    expect(repaired.id).not.toBe(original.id);

    // It was taken out of the queue, as a purge would: so it is missing again, and sent again.
    await foundMissing(eventId);
    await audit('--repair', ...APPLY);
    await mail.purge();
    await foundMissing(eventId);
    await audit('--repair', ...APPLY);
    expect(await handle(mail)).toBe(1);
    expect(await handled(mail, sale)).toBe(1);
  });

  test('finds an event unproven whose consumer was declared only just', async () => {
    for (const consumer of small.consumers) await consumer.declareAgain();
    const { eventId } = await sell(randomUUID());
    await ledger.take();
    await foundMissing(eventId);
    const { code, out } = await run();
    expect(code).toBe(0);
    expect(out).toContain('Unproven events have no inbox row');
    await audit('--repair', ...APPLY);
  });

  test('the audit prints what is missing and the command to run', async () => {
    const { eventId } = await sell(randomUUID());
    await mail.take();
    await handle(ledger);
    await foundMissing(eventId);
    const shown = await run('--earlier', '--since', '30m');
    expect(shown.code).toBe(1);
    expect(shown.out).toMatch(/^\d+ missing {2}/);
    expect(unwrapped(shown.out)).toContain(`${eventId} Sold, by mail, published `);
    expect(shown.out).toContain(
      `npx cdk-mailroom audit --since 40m --grace 1s --earlier --repair --stack ${small.stack} --region ${REGION}`,
    );
    await audit('--repair', ...APPLY);
  });

  test('runs on a schedule, too', async () => {
    await small.publishedAgo(10 * 60_000, Sold.type);
    const eventId = await small.publishedAgo(30 * 60_000, Sold.type);
    const committedAt = eventIdTime(eventId);
    const row = {
      ...inboxKey('ledger', eventId),
      schema: SCHEMA,
      status: 'PROCESSED',
      fence: 'f',
      attempts: 1,
    };
    await small.table.write({ Put: { Item: { ...row, processedAt: committedAt } } });
    vi.stubEnv('AWS_REGION', REGION);
    vi.stubEnv('MAILROOM_TABLE', small.tableName);
    vi.stubEnv('MAILROOM_AUDIT_SINCE_MS', '3600000');
    vi.stubEnv('MAILROOM_AUDIT_EVERY_MS', '900000');
    vi.stubEnv('POWERTOOLS_DEV', 'true'); // prints to the console,
    vi.stubEnv('POWERTOOLS_METRICS_DISABLED', 'false'); // metrics too
    const lines: string[] = [];
    for (const method of ['log', 'info'] as const)
      vi.spyOn(console, method).mockImplementation((line) => lines.push(String(line)));
    const { handler } = await import('../../../lambdas/audit/handler.ts');
    await handler({}, lambdaContext({ timeoutMs: 60_000 }));
    const printed = lines.map((line) => JSON.parse(line));
    expect(printed).toContainEqual(
      expect.objectContaining({ EventsMissing: 0, EventsDuplicated: 0, table: small.tableName }),
    );
    // The deliveries of a period have the time of its start.
    const periodMs = 900_000;
    expect(printed).toContainEqual(
      expect.objectContaining({
        _aws: expect.objectContaining({ Timestamp: Math.floor(committedAt / periodMs) * periodMs }),
        consumer: 'ledger',
        service: 'mailroom-audit',
        DeliveriesPublished: 1,
        DeliveriesProcessed: 1,
      }),
    );
    expect(printed).toContainEqual(
      expect.objectContaining({
        message: 'Audited',
        events: 2,
        consumers: {
          ledger: expect.objectContaining({ processed: 1, unproven: 1 }),
          mail: expect.objectContaining({ unproven: 2 }),
        },
      }),
    );
  });
});
