import { expect, test } from 'vitest';
import { type Handler, leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { CONSUMER, consumer, type Parts, send } from './consumer-rig.ts';

const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const traceId = 'Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1';

const fieldsOf = (parts: Parts) => parts.telemetry.lines().map(({ extra }) => extra as object);

test.each<[string, object, (fail: (fields: object) => never) => Handler]>([
  ['leased', { attempt: 1 }, (fail) => leased(ThingHappened, async (_, { logFields }) => fail(logFields))],
  ['transactional', {}, (fail) => transactional(ThingHappened, async (_, { logFields }) => fail(logFields))],
])('the log lines of a message, and those of its %s handler, identify it', async (_, more, handlerOf) => {
  const parts = rig();
  let given: object | undefined;
  const handler = handlerOf((fields) => {
    given = fields;
    throw new Error('It failed');
  });
  const event = send(parts, { traceparent, traceId });
  await consumer(parts, [handler]).deliver();
  const fields = {
    consumer: CONSUMER,
    eventId: event.eventId,
    eventType: 'ThingHappened',
    messageId: expect.any(String),
    receives: 1,
    correlationId: 'chain',
    trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
    xrayTraceId: '1-5759e988-bd862e3fe1be46a994272793',
    ...more,
  };
  expect(given).toEqual(fields);
  expect(fieldsOf(parts)).toEqual([{ ...fields, error: expect.any(Error) }]);
});

test('a message that cannot be read is identified by its message id', async () => {
  const parts = rig();
  parts.queue.send('no json');
  await consumer(parts, []).deliver();
  const [fields] = fieldsOf(parts) as { readonly messageId: string }[];
  expect(fields).toEqual({
    consumer: CONSUMER,
    eventId: `unreadable-${fields?.messageId}`,
    messageId: expect.any(String),
    receives: 1,
    error: expect.any(Error),
  });
});

test('malformed trace contexts appear in no log line', async () => {
  const parts = rig();
  const fails = leased(ThingHappened, () => Promise.reject(new Error('It failed')));
  send(parts, { traceparent: 'secret', traceId: 'Root=secret' });
  await consumer(parts, [fails]).deliver();
  expect(fieldsOf(parts)).toHaveLength(1);
  expect(JSON.stringify(fieldsOf(parts))).not.toContain('secret');
});
