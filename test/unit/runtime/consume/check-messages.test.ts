import { expect, test } from 'vitest';
import type { CheckReport } from '../../../../lambdas/runtime/consume/check-messages.ts';
import { createConsumer } from '../../../../lambdas/runtime/consume/consumer.ts';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import type { Envelope } from '../../../../lambdas/runtime/event.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { consumerConfig, rig, ThingHappened } from '../../../support/runtime-rig.ts';

test('a check reports which messages the consumer can read today; it runs none and touches no row', async () => {
  const parts = rig();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  const before = parts.memory.items();
  let runs = 0;
  const consume = createConsumer({
    ...parts,
    config: consumerConfig,
    handlers: [
      leased(ThingHappened, async () => {
        runs += 1;
      }),
    ],
  });
  const envelope = JSON.parse(parts.rows()[0]?.envelope ?? '') as Envelope;
  const details = [
    envelope,
    { ...envelope, version: 1, data: { text: '7' } }, // read by the upcast
    { ...envelope, data: { n: 'seven' } } as unknown as Envelope,
    { ...envelope, version: 3 },
    { ...envelope, type: 'ThingLost' },
  ];
  const delivered = (detail: Envelope, source = 'things', type: string = detail.type) =>
    JSON.stringify({ source, 'detail-type': type, detail });
  const bodies = [
    ...details.map((detail) => delivered(detail)),
    delivered(envelope, 'strangers'),
    delivered(envelope, 'things', 'ThingLost'),
    'no JSON',
  ];
  const request = { mailroomCheck: { bodies } } as unknown as Parameters<typeof consume>[0];
  const report = (await consume(request, lambdaContext(parts))) as CheckReport;

  const { eventId } = envelope;
  expect(report).toMatchObject({
    batchItemFailures: [],
    checks: [
      { ok: true, eventId, type: 'ThingHappened' },
      { ok: true, eventId, type: 'ThingHappened' },
      { ok: false, code: 'INVALID_PAYLOAD', message: expect.stringContaining('data.n') },
      { ok: false, code: 'UNKNOWN_EVENT_VERSION' },
      { ok: false, code: 'UNKNOWN_EVENT_TYPE' },
      { ok: false, code: 'WRONG_SOURCE', message: expect.stringContaining('"strangers"') },
      { ok: false, code: 'WRONG_TYPE' },
      { ok: false, code: 'UNREADABLE_MESSAGE' },
    ],
  });
  expect(runs).toBe(0);
  expect(parts.memory.items()).toEqual(before);
});

test('a batch of SQS is a batch, whatever its messages say', async () => {
  const parts = rig();
  const consume = createConsumer({ ...parts, config: consumerConfig, handlers: [] });
  parts.queue.send({ mailroomCheck: { bodies: [] } });
  const { failed } = await parts.queue.deliver(consume);
  expect(failed).toHaveLength(1);
});
