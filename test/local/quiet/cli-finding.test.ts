import { describe, expect, inject, it, vi } from 'vitest';
import { asDelivered } from '../../../demo/shop.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../../lambdas/runtime/store/row-schema.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { eventually } from '../support/eventually.ts';
import { mailroom, mailroomUntil, type Run } from '../support/mailroom.ts';
import { charges, placeOrder, put } from '../support/order-system.ts';
import { send } from '../support/queues.ts';
import { unpublishedOrder } from '../support/unpublished-order.ts';

vi.setConfig({ maxConcurrency: 10 });

/** Runs the first command of `mailroom` that was printed, as it was printed, with more words behind it. */
async function runPrinted(text: string, ...more: readonly string[]): Promise<Run> {
  const line = text.split('\n').find((one) => /^\s*npx cdk-mailroom /.test(one));
  if (line === undefined) throw new Error(`No command was printed: ${text}`);
  const words = line.trim().split(/\s+/).slice(2);
  return mailroom(...words, ...more);
}

describe.concurrent('where is order X?', () => {
  it('why names the cause and the repair, and the printed command repairs it', async () => {
    const { orderId } = await placeOrder({ customerId: 'fail-5' });
    const why = await eventually(async () => {
      const run = await mailroom('why', orderId);
      expect(run.out).toMatch(/^rejected/);
      expect(run.out).toContain('dlq redrive consumer:payments');
      return run;
    });
    expect(unwrapped(why.out)).toMatch(/The bank answered/);
    const plan = await runPrinted(why.out);
    expect(plan.out).toContain('would run');
    expect(await charges(orderId)).toEqual([]);
    const applied = await runPrinted(why.out, '--apply', '--reason', 'the bank works again');
    expect(applied.code, applied.out + applied.err).toBe(0);
    await eventually(async () => expect((await mailroom('why', orderId)).out).toMatch(/^processed/));
    expect(await charges(orderId)).toHaveLength(1);
  });

  it('an order of the past is found around its time, and by the beginning of its event id', async () => {
    const { orderId } = await placeOrder();
    const now = new Date().toISOString();
    const around = await eventually(async () => {
      const run = await mailroom('why', orderId, '--at', now, '--since', '2m', '--json');
      expect(run.json().verdict.state).toBe('processed');
      return run.json();
    });
    const { eventId } = around.verdict;
    const { code, json } = await mailroom('why', eventId.slice(0, 23), '--json');
    expect(code).toBe(0);
    expect(json().events[0]).toMatchObject({ eventId, aggregateId: orderId });
  });
});

describe.concurrent('the history of an order', () => {
  it('lists its published events, and republishing one of them charges no one again', async () => {
    const { orderId } = await placeOrder();
    const listed = await eventually(async () => {
      const run = await mailroom('events', 'list', '--published', '--aggregate', orderId, '--json');
      expect(run.code, run.err).toBe(0);
      expect(run.json().events.at(-1)).toMatchObject({ type: 'OrderPlaced', aggregateId: orderId });
      return run.json().events;
    });
    const { eventId } = listed.at(-1);
    await eventually(async () => expect((await mailroom('why', orderId)).out).toMatch(/^processed/));
    const csv = await mailroom('events', 'list', '--published', '--type', 'OrderPlaced', '--format', 'csv');
    expect(csv.out).toContain(`${eventId},OrderPlaced,orders,Order,${orderId},`);
    const depths = async () => (await mailroom('status', '--json')).json().consumers;
    const plan = await mailroom('events', 'republish', eventId);
    expect(unwrapped(plan.out)).toContain('payments: has processed it, and absorbs the duplicate');
    const applied = await runPrinted(plan.out.replace(/'…'/, 'drill'));
    expect(applied.code, applied.out + applied.err).toBe(0);
    const history = await mailroom('operations', '--since', '1h', '--json');
    expect(history.json().operations).toContainEqual(
      expect.objectContaining({ command: 'events republish', subject: eventId, reason: 'drill' }),
    );
    await eventually(async () =>
      expect(await depths()).toMatchObject({ payments: { queued: 0, inFlight: 0 } }),
    );
    expect(await charges(orderId)).toHaveLength(1);
  });
});

describe.concurrent("a dead worker's lease", () => {
  it('why says that the charge may have happened and what comes next; the next delivery repairs it', async () => {
    const { order, envelope, row } = await unpublishedOrder();
    const { eventId, type } = envelope;
    const diedAt = Date.now() - 60_000;
    await put({ ...row, status: 'PUBLISHED', publishedAt: diedAt, publishedBy: 'stream' });
    await put({
      ...inboxKey('payments', eventId),
      schema: SCHEMA,
      status: 'PROCESSING',
      fence: 'of-a-dead-worker',
      attempts: 1,
      type,
      claimedAt: diedAt,
      leaseUntil: diedAt + 1_000,
      endsBy: diedAt + 1_000,
      effects: {
        charge: {
          status: 'IN_PROGRESS',
          fence: 'of-a-dead-worker',
          run: 1,
          startedAt: diedAt,
          endsBy: diedAt + 1_000,
        },
      },
    });
    const why = await eventually(async () => {
      const run = await mailroom('why', order.orderId);
      expect(unwrapped(run.out)).toContain('payments started OrderPlaced');
      return run;
    });
    expect(unwrapped(why.out)).toMatch(/stopped without a result\. Its lease ended .* ago/);
    expect(unwrapped(why.out)).toContain(`payments:${eventId}:charge`);
    const logs = await runPrinted(why.out);
    expect(logs.code, logs.err).toBe(0);
    expect(logs.out).toMatch(/payments:\n {2}aws logs filter-log-events --log-group-name \S+/);
    expect(logs.out).not.toContain('logs-insights'); // A local engine has no console.

    await send('payments', [asDelivered('orders', envelope)]);
    await eventually(async () => expect(await charges(order.orderId)).toHaveLength(1));
    await eventually(async () =>
      expect((await mailroom('describe', 'payments', '--json')).json().deployed.mappings).toMatchObject([
        { state: 'Enabled' },
      ]),
    );
  });
});

describe.concurrent('tail', () => {
  it('shows an order from its commit to the end, and stops with Ctrl-C', async () => {
    const order = placeOrder();
    const run = await mailroomUntil(
      (out) => /"type":"OrderPlaced".*"payments":"processed"/.test(out),
      inject('endpoint'),
      ['tail', '--since', '1m', '--json'],
    );
    await order;
    expect(run.code).toBe(0);
    for (const line of run.out.trim().split('\n')) expect(JSON.parse(line)).toHaveProperty('consumers');
  });
});
