import { DeleteCommand } from '@aws-sdk/lib-dynamodb';
import { describe, expect, it, vi } from 'vitest';
import { mintEventId, outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { eventually } from '../support/eventually.ts';
import { failedMessage } from '../support/failed-message.ts';
import { mailroom } from '../support/mailroom.ts';
import { documents, only, placeOrder, put, settled, tableName } from '../support/order-system.ts';
import { takeDeadLetter } from '../support/queues.ts';
import { unpublishedOrder } from '../support/unpublished-order.ts';

vi.setConfig({ maxConcurrency: 10 });

interface Told {
  readonly at: number | null;
  readonly consumer: string | null;
  readonly what: string;
}

describe.concurrent('why', () => {
  it('tells the whole story of an order that went well, by the order and by the chain', async () => {
    const { orderId } = await placeOrder();
    const { events } = await settled(orderId);
    const { eventId, correlationId } = only(events, 'OrderPlaced').envelope;

    const run = await mailroom('why', orderId, '--json', '--since', '10m');
    expect(run.code).toBe(0);
    const { verdict, events: told, more } = run.json();
    expect(verdict).toMatchObject({ state: 'processed', eventId, consumer: null, next: null });
    expect(more).toBe(false);
    expect(told.map((event: { type: string }) => event.type).sort()).toEqual([
      'OrderPlaced',
      'PaymentCaptured',
      'StockReserved',
    ]);
    const [placed] = told;
    expect(placed).toMatchObject({
      eventId,
      source: 'orders',
      aggregateId: orderId,
      causationId: null,
      status: 'PUBLISHED',
      consumers: { payments: 'PROCESSED', inventory: 'PROCESSED' },
    });
    expect([...placed.caused].sort()).toEqual(
      told
        .slice(1)
        .map((event: { eventId: string }) => event.eventId)
        .sort(),
    );
    const story = placed.story as readonly Told[];
    expect(story[0]).toMatchObject({ what: 'committed', consumer: null });
    const payments = story.filter(({ consumer }) => consumer === 'payments').map(({ what }) => what);
    expect(payments).toEqual(['claimed', 'effect-started', 'effect-completed', 'processed']);
    expect(run.out).not.toContain('totalCents');

    const chain = (await mailroom('why', correlationId.toUpperCase(), '--json', '--payload')).json();
    expect(chain.events.map((event: { eventId: string }) => event.eventId)).toEqual(
      told.map((event: { eventId: string }) => event.eventId),
    );
    expect(chain.events[0].data).toMatchObject({ orderId, totalCents: 1_350 });

    const brief = await mailroom('why', eventId);
    expect(unwrapped(brief.out)).toMatch(
      /^processed OrderPlaced .*: published, and processed by inventory \(.+ after its commit\), payments \(.+\); StockReserved by /,
    );
    const whole = await mailroom('why', eventId, '--story');
    expect(whole.out).toMatch(/OrderPlaced\s+payments\s+effect charge completed/);
  });

  it('says which attempt failed and what comes next', async () => {
    const { order, envelope, row } = await failedMessage(2);
    const run = await mailroom('why', order.orderId, '--json', '--since', '10m');
    const { verdict } = run.json();
    expect(verdict).toMatchObject({ state: 'retrying', eventId: envelope.eventId });
    expect(run.code).toBe(0);
    expect(verdict.text).toMatch(/payments failed to process .*attempt 2 of 5: The bank answered 500/);
    expect(verdict.text).toMatch(/It is retried .*If that fails too/);
    await documents.send(new DeleteCommand({ TableName: tableName, Key: { PK: row.PK, SK: row.SK } }));
  });

  it('says that a message was rejected, and where its dead letter is', async () => {
    const { orderId } = await placeOrder({ customerId: 'fail-5' });
    const messageId = await eventually(async () => {
      const run = await mailroom('why', orderId, '--json', '--since', '30m');
      const { verdict } = run.json();
      expect(verdict).toMatchObject({ state: 'rejected', consumer: 'payments' });
      expect(run.code).toBe(1);
      const id = /dlq redrive consumer:payments (\S+)/.exec(verdict.next)?.[1];
      expect(id).toBeDefined();
      expect(verdict.text).toMatch(/permanently deleted in 13 d/);
      return id ?? '';
    });
    // The look has put the dead letter back: it can be taken at once.
    await takeDeadLetter('payments', messageId);
  });

  it('why does not call an event missing that was published before its consumer existed', async () => {
    const publishedAt = Date.now() - 24.5 * 3_600_000;
    const eventId = mintEventId(publishedAt, 8);
    const { row, envelope } = await unpublishedOrder();
    await put({
      ...row,
      ...outboxKeyOf(eventId),
      status: 'PUBLISHED',
      publishedAt,
      publishedBy: 'stream',
      envelope: JSON.stringify({ ...envelope, eventId }),
    });

    await eventually(async () => {
      const { code, json } = await mailroom('why', eventId, '--json');
      expect(json().verdict).toMatchObject({ state: 'unproven', eventId });
      expect(json().verdict.next).toMatch(/mailroom audit --since 25h.* --earlier/);
      expect(json().events[0].consumers).toEqual({ inventory: null, payments: null });
      expect(code).toBe(0);
    });
    await documents.send(new DeleteCommand({ TableName: tableName, Key: { ...outboxKeyOf(eventId) } }));
  });

  it('says how to look further when it finds nothing', async () => {
    const { code, err } = await mailroom('why', 'no-such-order', '--since', '1m');
    expect(code).toBe(3);
    expect(unwrapped(err)).toMatch(/NO_SUCH_EVENT: .*within 1 min of now .*--since 24h/);
  });
});
