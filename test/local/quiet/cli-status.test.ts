import { expect, inject, it } from 'vitest';
import { asDelivered } from '../../../demo/shop.ts';
import { DAY_MS } from '../../../lambdas/runtime/base/units.ts';
import { mintEventId } from '../../../lambdas/runtime/store/event-id.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { eventually } from '../support/eventually.ts';
import { mailroom, mailroomUntil } from '../support/mailroom.ts';
import { deadLetters, send, takeDeadLetter } from '../support/queues.ts';
import { unpublishedOrder } from '../support/unpublished-order.ts';

it('status shows a dead letter, where it is, and when it is permanently deleted', async () => {
  const { envelope } = await unpublishedOrder();
  const poison = { ...envelope, eventId: mintEventId(Date.now(), 8), version: 99 };
  const sentAfter = Date.now();
  const [messageId = ''] = await send('payments', [asDelivered('orders', poison)]);
  // Other tests have dead letters of payments, too, and take theirs out.
  await eventually(async () => expect(await deadLetters('payments')).toContain(messageId));

  const report = await eventually(async () => {
    const { code, json } = await mailroom('status', '--json');
    const found = json();
    const own = found.deadLetterSources.find(
      ({ source }: { source: string }) => source === 'consumer:payments',
    );
    expect(found.consumers.payments.deadLetters).toBeGreaterThan(0);
    expect(own.count).toBeGreaterThan(0);
    expect(code).toBe(1);
    return { ...found, own };
  });
  expect(report).toMatchObject({ stack: 'mailroom-local', region: 'us-east-1', ok: false });
  expect(Object.keys(report.consumers)).toEqual(['inventory', 'notifications', 'order-status', 'payments']);
  expect(report.consumers.payments.rejected).toBeGreaterThan(0);
  expect(report.deadLetterSources).toHaveLength(10);
  expect(report.own.firstExpiryAt).toBeLessThanOrEqual(Date.now() + 14 * DAY_MS);
  expect(report.own.firstExpiryAt).toBe(report.own.oldestAt + 14 * DAY_MS);
  expect(report.own.oldestAt).toBeGreaterThan(sentAfter - DAY_MS);

  const { out, code } = await mailroom('status');
  expect(code).toBe(1);
  expect(out.split('\n')[0]).toMatch(/\d problems?.*mailroom-local, us-east-1/);
  expect(unwrapped(out)).toMatch(/in consumer:payments; the first is permanently deleted in 1[34] d/);
  expect(out).toMatch(/npx cdk-mailroom dlq list consumer:payments/);
  expect(out).not.toContain('\u001b');
  await takeDeadLetter('payments', messageId);
});

it('status --watch looks again until it is stopped; with --json it prints a document a line', async () => {
  const endpoint = inject('endpoint');
  const lines = (out: string) => out.trimEnd().split('\n');
  const argv = ['status', '--watch', '--json'];
  const { out } = await mailroomUntil((text) => lines(text).length >= 2, endpoint, argv);
  const [first, second] = lines(out).map((line) => JSON.parse(line));
  expect(second.at).toBeGreaterThan(first.at);
});
