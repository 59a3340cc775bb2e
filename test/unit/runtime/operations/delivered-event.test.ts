import { expect, test } from 'vitest';
import { deliveredEvent, deliveredIdentity } from '../../../../lambdas/runtime/operations/delivered-event.ts';

const PLACE = { account: '123456789012', region: 'eu-west-1', time: Date.UTC(2026, 0, 1) };

test('an envelope is delivered byte for byte, numbers that JavaScript cannot hold too', () => {
  const eventId = '01a1fba6-4458-7a41-9c37-3f5d2b8e1103';
  const envelope =
    `{"eventId":"${eventId}","type":"OrderPlaced","version":1,"aggregateType":"Order","aggregateId":"1",` +
    '"occurredAt":1795223340120,"correlationId":"c","data":{"n":12345678901234567890}}';
  const body = deliveredEvent({ source: 'orders', type: 'OrderPlaced', envelope }, PLACE);
  expect(body).toContain(`"detail":${envelope}}`);
  expect(deliveredIdentity(body)?.eventId).toBe(eventId);
});

test('each delivery has a different EventBridge id', () => {
  const event = { source: 'orders', type: 'OrderPlaced', envelope: '{}' };
  const ids = [1, 2].map(() => JSON.parse(deliveredEvent(event, PLACE)).id);
  expect(new Set(ids).size).toBe(2);
});

test.each([
  'no JSON',
  'null',
  '"text"',
  '{}',
  '{"detail":null}',
  '{"detail":{"eventId":7}}',
  '{"detail":{"eventId":"01a1fba6-4458-7a41-9c37-3f5d2b8e1103"}}',
])('there is no event id in %s', (body) => {
  expect(deliveredIdentity(body)?.eventId).toBeUndefined();
});
