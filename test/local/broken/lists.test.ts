import { randomUUID } from 'node:crypto';
import { DeleteCommand } from '@aws-sdk/lib-dynamodb';
import { describe, expect, it, vi } from 'vitest';
import { asDelivered } from '../../../demo/shop.ts';
import { DAY_MS } from '../../../lambdas/runtime/base/units.ts';
import { eventIdShard, mintEventId } from '../../../lambdas/runtime/store/event-id.ts';
import { deadKey, operationKey, rejectedKey } from '../../../lambdas/runtime/store/keys.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { eventually } from '../support/eventually.ts';
import { failedMessage } from '../support/failed-message.ts';
import { mailroom } from '../support/mailroom.ts';
import { documents, put, tableName } from '../support/order-system.ts';
import { send, takeDeadLetter } from '../support/queues.ts';
import { unpublishedOrder } from '../support/unpublished-order.ts';

vi.setConfig({ maxConcurrency: 10 });

interface Listed {
  readonly eventId: string;
}
interface Cause {
  readonly fingerprint: string;
  readonly count: number;
}

describe.concurrent('messages list', () => {
  it('shows what failed with its attempt and the next one, and the cause that all of them share', async () => {
    const failed = await Promise.all([failedMessage(2), failedMessage(3)]);
    const ids = failed.map(({ envelope }) => envelope.eventId);
    const { messages } = (await mailroom('messages', 'list', '--failed', '--json')).json();
    const own = messages.filter(({ eventId }: Listed) => ids.includes(eventId));
    expect(own.map(({ attempt }: { attempt: number }) => attempt).sort()).toEqual([2, 3]);
    for (const message of own) {
      expect(message).toMatchObject({
        consumer: 'payments',
        status: 'FAILED',
        type: 'OrderPlaced',
        maxAttempts: 5,
        reason: null,
        expiresAt: null,
        lastError: expect.stringContaining('The bank answered 500'),
      });
      expect(message.nextAt).toBeGreaterThan(message.at);
    }
    const listed = await mailroom(
      'messages',
      'list',
      '--failed',
      '--by',
      'cause',
      '--consumer',
      'payments',
      '--json',
    );
    expect(listed.code).toBe(0);
    for (const { fingerprint } of listed.json().causes as Cause[]) expect(fingerprint).toMatch(/^payments /);
  });

  it('shows what was rejected, why, and when its dead letter is deleted', async () => {
    const { envelope } = await unpublishedOrder();
    const eventId = mintEventId(Date.now(), 8);
    const poison = { ...envelope, eventId, version: 99 };
    const sentAfter = Date.now();
    const [messageId = ''] = await send('payments', [asDelivered('orders', poison)]);
    const sentBefore = Date.now();
    const argv = ['messages', 'list', '--rejected', '--consumer', 'payments'];
    await eventually(async () => {
      const { messages } = (await mailroom(...argv, '--json')).json();
      const own = messages.find((message: Listed) => message.eventId === eventId);
      expect(own).toMatchObject({
        status: 'REJECTED',
        reason: 'UNKNOWN_EVENT_VERSION',
        nextAt: null,
        fingerprint: expect.stringContaining('payments UNKNOWN_EVENT_VERSION'),
      });
      // SQS took it while it was sent, and may count in seconds.
      expect(own.expiresAt - 14 * DAY_MS).toBeGreaterThan(sentAfter - 1_000);
      expect(own.expiresAt - 14 * DAY_MS).toBeLessThanOrEqual(sentBefore);
    });
    const text = await mailroom(...argv);
    expect(unwrapped(text.out)).toMatch(
      new RegExp(`${eventId} .* never payments, OrderPlaced, any dead letter expires in 1[34] d`),
    );
    const causes = (await mailroom(...argv, '--by', 'cause', '--json')).json().causes as Cause[];
    expect(causes.some(({ fingerprint }) => fingerprint.includes('UNKNOWN_EVENT_VERSION'))).toBe(true);
    await takeDeadLetter('payments', messageId);
  });
});

it('messages list shows the newest rejections first, whatever the age of their events', async () => {
  const rejection = async (ageMs: number, rejectedAt: number) => {
    const key = rejectedKey('notifications', mintEventId(Date.now() - ageMs, 8));
    await put({ ...key, schema: 1, rejectedAt, reason: 'TEST', lastError: 'no', fingerprint: 'no' });
    return key;
  };
  // Later than anything else that the other tests have rejected.
  const newest = await rejection(DAY_MS, Date.now() + 2 * DAY_MS);
  const second = await rejection(2 * DAY_MS, Date.now() + DAY_MS);
  const argv = ['messages', 'list', '--rejected', '--consumer', 'notifications', '--json', '--limit'];
  const listed = (await mailroom(...argv, '2')).json();
  const one = (await mailroom(...argv, '1')).json();
  for (const Key of [newest, second])
    await documents.send(new DeleteCommand({ TableName: tableName, Key: { ...Key } }));
  expect(listed.messages.map(({ eventId }: Listed) => eventId)).toEqual([newest.SK, second.SK]);
  expect(one).toMatchObject({ messages: [{ eventId: newest.SK }], more: true });
});

it('dlq list shows the DEAD events and groups them by cause', async () => {
  const eventId = mintEventId(Date.now(), 8);
  const fingerprint = `relay ${randomUUID()}: refused`;
  const cause = { lastError: 'the bus does not want it', fingerprint };
  const pointerKey = deadKey(eventIdShard(eventId), eventId);
  const deadAt = Date.now() - 95 * 60_000;
  await put({ ...pointerKey, schema: 1, deadAt, type: 'OrderPlaced', ...cause });

  const [listed] = (await mailroom('dlq', 'list', 'dead', '--json')).json().deadLetterSources;
  expect(listed.deadLetters).toContainEqual({
    id: eventId,
    eventId,
    type: 'OrderPlaced',
    sentAt: deadAt,
    expiresAt: null,
    neverClaimed: false,
    effects: [],
    ...cause,
  });
  const [grouped] = (await mailroom('dlq', 'list', 'dead', '--by', 'cause', '--json')).json()
    .deadLetterSources;
  expect(grouped).toMatchObject({ source: 'dead', more: false });
  expect(grouped.causes).toContainEqual({
    fingerprint,
    count: 1,
    oldestAt: deadAt,
    newestAt: deadAt,
    example: eventId,
  });
  const people = await mailroom('dlq', 'list', 'dead', '--by', 'cause');
  expect(people.out).toMatch(/1\s+handled\s+1 h 3\d min ago/);
  expect(people.out).toContain(eventId);
  await documents.send(new DeleteCommand({ TableName: tableName, Key: { ...pointerKey } }));
});

it('log shows what operators changed, newest first, as far back as it is asked', async () => {
  const subject = randomUUID();
  const ages = [3 * DAY_MS, 40 * DAY_MS, 2 * DAY_MS];
  for (const age of ages) {
    const at = Date.now() - age;
    await put({
      ...operationKey(at, randomUUID()),
      schema: 1,
      at,
      by: 'arn:aws:iam::1:user/ada',
      command: 'messages resolve',
      subject,
      reason: `${age / DAY_MS} days ago`,
      expiresAt: 4_102_444_800,
    });
  }
  const shown = async (...argv: string[]) =>
    (await mailroom('operations', '--json', ...argv))
      .json()
      .operations.filter((operation: { subject: string }) => operation.subject === subject)
      .map(({ reason }: { reason: string }) => reason);
  expect(await shown()).toEqual(['2 days ago', '3 days ago']);
  expect(await shown('--since', '60d')).toEqual(['2 days ago', '3 days ago', '40 days ago']);
  expect(await shown('--since', '1d')).toEqual([]);
});
