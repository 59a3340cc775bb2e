import { randomUUID } from 'node:crypto';
import { DeleteCommand } from '@aws-sdk/lib-dynamodb';
import { describe, expect, it, vi } from 'vitest';
import { asDelivered } from '../../../demo/shop.ts';
import { orderKey, orderRow } from '../../../lambdas/example/orders/order.ts';
import { mintEventId, unreadableId } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../../lambdas/runtime/store/row-schema.ts';
import { byId, delivered, die, paymentCaptured, seeing } from '../support/dead-letters.ts';
import { eventually } from '../support/eventually.ts';
import { mailroom } from '../support/mailroom.ts';
import { documents, emails, get, message, partition, put, tableName } from '../support/order-system.ts';
import { send } from '../support/queues.ts';
import { unpublishedOrder } from '../support/unpublished-order.ts';

vi.setConfig({ maxConcurrency: 10 });

/** For how long a message is held that must stay so while a test looks at it. */
const HELD_MS = 3_600_000;

/** A redrive that waits as long as this engine takes. */
const PATIENTLY = ['--wait', '15m'];

const APPLY = ['--apply', '--reason', 'a test of dead letters'];

describe.concurrent('dead letters of a consumer', () => {
  it('dlq list shows event, cause and expiry of each dead letter, and removes none', async () => {
    const envelope = await paymentCaptured();
    const unreadable = await die('consumer:notifications', `no JSON: ${randomUUID()}`);
    const readable = await die('consumer:notifications', delivered(envelope));
    const look = () =>
      eventually(async () => {
        const run = await mailroom('dlq', 'list', 'consumer:notifications', '--json');
        const [{ source, count, deadLetters }] = run.json().deadLetterSources;
        expect(count).toBeGreaterThanOrEqual(2); // SQS counts approximately
        expect(Object.keys(byId(deadLetters))).toEqual(expect.arrayContaining([unreadable, readable]));
        return { run, source, deadLetters: byId(deadLetters) };
      });
    const { run, source, deadLetters } = await look();
    expect(run.code).toBe(0);
    expect(source).toBe('consumer:notifications');
    const sentAt = Number(deadLetters[readable]?.sentAt);
    expect(deadLetters[readable]).toEqual({
      id: readable,
      eventId: envelope.eventId,
      type: 'PaymentCaptured',
      sentAt: expect.any(Number),
      expiresAt: sentAt + 14 * 86_400_000,
      fingerprint: 'never claimed: does the function start, and reach its table?',
      lastError: null,
      neverClaimed: true,
      effects: [],
    });
    expect(deadLetters[unreadable]).toMatchObject({ eventId: null, type: null });
    await look();
    await eventually(async () =>
      expect((await mailroom('dlq', 'list', '--verbose')).out).toContain(readable),
    );
    await seeing(
      ...['dlq', 'discard', 'consumer:notifications', unreadable, readable],
      ...['--reason', 'the end of a test', '--apply'],
    );
  });

  it('a redrive plans first and changes nothing; --apply redrives only messages that would run', async () => {
    const [runs, handled, invalid] = await Promise.all([
      paymentCaptured(),
      paymentCaptured(),
      paymentCaptured(),
    ]);
    await send('notifications', [delivered(handled)]);
    await eventually(async () => {
      expect(await message('notifications', handled.eventId)).toMatchObject({ status: 'PROCESSED' });
    });
    const source = 'consumer:notifications';
    const ids = {
      runs: await die(source, delivered(runs)),
      handled: await die(source, delivered(handled)),
      invalid: await die(source, delivered({ ...invalid, data: { amountCents: 'much' } })),
      newer: await die(source, delivered({ ...invalid, version: 99 })),
      unreadable: await die(source, JSON.stringify(randomUUID())),
    };
    const argv = ['dlq', 'redrive', source, '--json', ...Object.values(ids)];
    for (let twice = 0; twice < 2; twice += 1) {
      const plan = await seeing(...argv);
      expect(plan.code).toBe(0);
      expect(plan.json()).toMatchObject({
        source,
        applied: false,
        verdicts: { runs: 1, handled: 1, fails: 3, 'too-old': 0, busy: 0 },
      });
      const deadLetters = byId(plan.json().deadLetters);
      expect(deadLetters[ids.invalid]).toMatchObject({ verdict: 'fails', code: 'INVALID_PAYLOAD' });
      expect(deadLetters[ids.newer]).toMatchObject({ verdict: 'fails', code: 'UNKNOWN_EVENT_VERSION' });
      expect(deadLetters[ids.unreadable]).toMatchObject({ verdict: 'fails', code: 'UNREADABLE_MESSAGE' });
      expect(await message('notifications', runs.eventId)).toBeUndefined();
    }

    const applied = await seeing(...argv, ...PATIENTLY, '--apply', '--reason', 'the provider is back');
    expect(applied.code, applied.err).toBe(1); // three dead letters are left
    const deadLetters = byId(applied.json().deadLetters);
    expect(deadLetters[ids.runs]).toMatchObject({ verdict: 'runs', outcome: 'processed' });
    expect(deadLetters[ids.handled]).toMatchObject({ verdict: 'handled', outcome: 'deleted' });
    expect(deadLetters[ids.invalid]).toMatchObject({ verdict: 'fails', outcome: 'kept' });
    expect(applied.json()).toMatchObject({ applied: true, stopped: false, processed: 1 });
    expect(await emails(runs.aggregateId)).toHaveLength(1);
    expect(await emails(handled.aggregateId)).toHaveLength(1);
    const [operation] = (await operations()).filter(({ reason }) => reason === 'the provider is back');
    expect(operation).toMatchObject({ command: 'dlq redrive', by: expect.stringContaining('arn:aws') });

    const gone = await mailroom('dlq', 'redrive', source, ids.runs);
    expect(gone.code).toBe(3);
    expect(gone.err).toContain('NO_SUCH_DEAD_LETTER');
    const left = [ids.invalid, ids.newer, ids.unreadable];
    const discarded = await seeing(
      ...['dlq', 'discard', source, ...left, '--reason', 'never valid', '--apply'],
    );
    expect(discarded.code).toBe(0);
    expect(await message('notifications', invalid.eventId)).toMatchObject({
      status: 'DISCARDED',
      discardedReason: 'never valid',
    });
  });

  it('a discard of an unreadable dead letter does not discard the event whose id it contains', async () => {
    const envelope = await paymentCaptured();
    const body = delivered({ ...envelope, correlationId: '' });
    const damaged = await die('consumer:notifications', body);
    const argv = [damaged, '--json', '--reason', 'a duplicate that was edited wrongly', '--apply'];
    const run = await seeing('dlq', 'discard', 'consumer:notifications', ...argv);
    expect(run.json().deadLetters).toMatchObject([{ id: damaged, eventId: null, outcome: 'discarded' }]);
    expect(await message('notifications', unreadableId(body))).toMatchObject({ status: 'DISCARDED' });
    await send('notifications', [delivered(envelope)]);
    await eventually(async () => {
      expect(await message('notifications', envelope.eventId)).toMatchObject({ status: 'PROCESSED' });
    });
    expect(await emails(envelope.aggregateId)).toHaveLength(1);
  });

  it('a redrive moves one, then ten, then the rest, and all are processed', async () => {
    const envelopes = await Promise.all(Array.from({ length: 13 }, () => paymentCaptured()));
    const ids: string[] = [];
    for (const envelope of envelopes) ids.push(await die('consumer:notifications', delivered(envelope)));
    const redrive = ['dlq', 'redrive', 'consumer:notifications', '--rate', '100/s', ...APPLY, '--json'];
    const { code, err, json } = await seeing(...redrive, ...PATIENTLY, ...ids);
    expect(code, err).toBe(0);
    expect(json()).toMatchObject({ processed: 13, stopped: false });
    for (const { aggregateId } of envelopes) expect(await emails(aggregateId)).toHaveLength(1);
  });

  it('a redrive stops when messages fail again with the same cause, and completes when it is fixed', async () => {
    // Of two orders: of one, the later event could supersede the earlier one meanwhile.
    const orders = [(await unpublishedOrder()).order, (await unpublishedOrder()).order];
    for (const { orderId } of orders)
      await documents.send(new DeleteCommand({ TableName: tableName, Key: { ...orderKey(orderId) } }));
    const poisons = await Promise.all(orders.map(({ orderId }) => paymentCaptured(orderId)));
    const sent = await send('order-status', poisons.map(delivered));
    const argv = ['dlq', 'redrive', 'consumer:order-status', '--json', ...sent];
    const plan = await seeing(...argv);
    const fingerprint = expect.stringContaining('order-status Error: ');
    expect(plan.json().deadLetters).toMatchObject([
      { verdict: 'runs', fingerprint },
      { verdict: 'runs', fingerprint },
    ]);

    const stopped = await seeing(...argv, ...PATIENTLY, ...APPLY);
    expect(stopped.code, stopped.err).toBe(1);
    expect(stopped.json()).toMatchObject({ stopped: true, processed: 0 });
    const outcomes = stopped.json().deadLetters.map(({ outcome }: { outcome: string }) => outcome);
    expect(outcomes.sort()).toEqual(['failed-again', 'untried']);

    for (const order of orders) await put(orderRow(order));
    const rest = stopped
      .json()
      .deadLetters.filter(({ outcome }: { outcome: string }) => outcome === 'untried');
    const redrive = ['dlq', 'redrive', 'consumer:order-status', '--json', ...PATIENTLY, ...APPLY];
    const mended = await seeing(...redrive, rest[0].id);
    expect(mended.code, mended.err).toBe(0);
    // The one that failed again is tried again by its own queue; unless its attempts were spent before the cause was gone.
    for (const { eventId } of poisons) {
      await eventually(async () => {
        const row = await message('order-status', eventId);
        if (row?.status === 'REJECTED')
          await mailroom('dlq', 'redrive', 'consumer:order-status', ...APPLY, eventId);
        expect(row).toMatchObject({ status: 'PROCESSED' });
      });
    }
    for (const { orderId } of orders)
      expect(await get(orderKey(orderId))).toMatchObject({ payment: 'captured' });
  });

  it('a message that is too old runs only after an operator allows it', async () => {
    const envelope = { ...(await paymentCaptured()), eventId: mintEventId(Date.now() - 36 * 86_400_000, 8) };
    const { eventId } = envelope;
    // The consumer has just started for the first time: it would run any event that has no row.
    await put({
      ...inboxKey('notifications', eventId),
      schema: SCHEMA,
      status: 'REJECTED',
      fence: 'of-a-worker-that-rejected-it',
      attempts: 0,
      type: envelope.type,
      rejectedAt: Date.now(),
      reason: 'EVENT_TOO_OLD',
      lastError: 'The event is older than the inbox retention.',
      fingerprint: 'notifications EVENT_TOO_OLD',
    });
    const [deadLetter = ''] = await send('notifications', [delivered(envelope)]);
    const argv = ['dlq', 'redrive', 'consumer:notifications', '--json', deadLetter];
    const plan = await seeing(...argv);
    expect(plan.json().deadLetters).toMatchObject([{ eventId, verdict: 'too-old', code: 'EVENT_TOO_OLD' }]);
    const refused = await seeing(...argv, ...APPLY);
    expect(refused.code).toBe(1);
    expect(refused.json().deadLetters).toMatchObject([{ outcome: 'kept' }]);

    const allow = ['messages', 'allow', 'notifications', eventId, '--json', '--reason', 'never sent before'];
    expect((await mailroom(...allow)).json()).toMatchObject({ status: 'allow', applied: false });
    allow.push('--apply');
    for (let twice = 0; twice < 2; twice += 1) expect(await mailroom(...allow)).toMatchObject({ code: 0 });
    const people = await mailroom(...allow.filter((word) => word !== '--json'));
    expect(people.out).toContain(
      `npx cdk-mailroom dlq redrive consumer:notifications ${eventId} --apply --reason 'never sent before'`,
    );
    expect((await seeing(...argv, ...PATIENTLY, ...APPLY)).code).toBe(0);
    expect(await message('notifications', eventId)).toMatchObject({
      status: 'PROCESSED',
      allowedReason: 'never sent before',
    });
    expect((await mailroom(...allow)).err).toContain('NOT_TOO_OLD');
  });

  it('a dead letter is not discarded while a worker holds its message', async () => {
    const { envelope } = await unpublishedOrder();
    const leaseUntil = Date.now() + HELD_MS;
    await put({
      ...inboxKey('payments', envelope.eventId),
      schema: SCHEMA,
      status: 'PROCESSING',
      fence: 'of-a-worker-that-takes-its-time',
      leaseUntil,
      endsBy: leaseUntil,
      attempts: 1,
      type: 'OrderPlaced',
      claimedAt: Date.now(),
    });
    const deadLetter = await die('rule:payments', asDelivered('orders', envelope));
    const plan = await seeing('dlq', 'redrive', 'rule:payments', '--json', deadLetter);
    expect(plan.json().deadLetters).toMatchObject([{ verdict: 'busy' }]);
    const discard = ['dlq', 'discard', 'rule:payments', deadLetter, '--reason', 'a test', '--json'];
    const busy = await seeing(...discard, '--apply');
    expect(busy.code).toBe(1);
    expect(busy.json().deadLetters).toMatchObject([{ outcome: 'busy' }]);

    const resolved = await mailroom(
      'messages',
      'resolve',
      'payments',
      envelope.eventId,
      '--reason',
      'by phone',
    );
    expect(resolved.code).toBe(2);
    expect(resolved.err).toContain('MESSAGE_LEASED');
    const forced = await mailroom(
      ...['messages', 'resolve', 'payments', envelope.eventId, '--reason', 'by phone', '--force', '--apply'],
    );
    expect(forced.code, forced.err).toBe(0);
    expect(await message('payments', envelope.eventId)).toMatchObject({
      status: 'PROCESSED',
      resolvedReason: 'by phone',
    });
    const absorbed = await seeing(...discard, '--apply');
    expect(absorbed.json().deadLetters).toMatchObject([{ outcome: 'handled' }]);
  });
});

describe.concurrent('dead letters of a rule', () => {
  it("a redrive sends a rule's dead letter to the consumer that never received it", async () => {
    const envelope = await paymentCaptured();
    const deadLetter = await die('rule:notifications', delivered(envelope));
    const redrive = ['dlq', 'redrive', 'rule:notifications', ...PATIENTLY, ...APPLY, deadLetter];
    const run = await seeing(...redrive);
    expect(run.code, run.err).toBe(0);
    expect(run.out).toContain('1 of 1 processed');
    expect(await emails(envelope.aggregateId)).toHaveLength(1);
  });

  it('a discarded event does not run when it is delivered later', async () => {
    const envelope = await paymentCaptured();
    const deadLetter = await die('rule:notifications', delivered(envelope));
    const argv = ['dlq', 'discard', 'rule:notifications', deadLetter, '--json'];
    expect((await mailroom(...argv, '--apply')).err).toContain('--reason');
    const plan = await seeing(...argv, '--reason', 'a test order');
    expect(plan.json()).toMatchObject({
      applied: false,
      deadLetters: [{ id: deadLetter, outcome: 'discard' }],
    });
    expect(await message('notifications', envelope.eventId)).toBeUndefined();

    const run = await seeing(...argv, '--reason', 'a test order', '--apply');
    expect(run.code).toBe(0);
    expect(run.json()).toMatchObject({
      applied: true,
      deadLetters: [{ id: deadLetter, outcome: 'discarded' }],
    });
    expect(await message('notifications', envelope.eventId)).toMatchObject({
      status: 'DISCARDED',
      discardedReason: 'a test order',
    });
    const again = await mailroom(...argv, '--reason', 'a test order', '--apply');
    expect(again.code).toBe(3);

    const copy = await die('rule:notifications', delivered(envelope));
    const handled = await seeing(...['dlq', 'redrive', 'rule:notifications', ...APPLY, copy]);
    expect(handled.code).toBe(0);
    expect(await emails(envelope.aggregateId)).toEqual([]);
  });
});

function operations() {
  return partition(`OPERATIONS#${new Date().toISOString().slice(0, 7)}`);
}
