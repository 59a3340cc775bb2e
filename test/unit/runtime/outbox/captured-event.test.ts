import { expect, test } from 'vitest';
import { refuseOtherRelay, refuseUnpublishable } from '../../../../lambdas/runtime/outbox/captured-event.ts';
import type { MintedEvent } from '../../../../lambdas/runtime/outbox/outbox-entry.ts';

const minted = (change: Partial<MintedEvent>): MintedEvent => ({
  eventId: '019b76da-a800-7000-8000-000000000001',
  now: 1,
  dueAt: undefined,
  aggregate: { type: 'order', id: '42' },
  entry: { source: 'orders', detailType: 'Placed', detail: '{}' } as MintedEvent['entry'],
  ...change,
});

const refusal = (change: Partial<MintedEvent>) => {
  try {
    refuseUnpublishable(minted(change), 'cdc');
    return undefined;
  } catch (error) {
    return error;
  }
};

test.each([
  ['deliverAt', { dueAt: 2 }, /deliverAt/],
  ['an aggregate type without a character', { aggregate: { type: '\u0000', id: '42' } }, /aggregateType/],
  ['an aggregate id without a character', { aggregate: { type: 'order', id: '' } }, /aggregateId/],
  ['an aggregate id beyond a key', { aggregate: { type: 'order', id: '€'.repeat(342) } }, /has 1026/],
])('change data capture cannot publish an event with %s', (_name, change, problem) => {
  expect(refusal(change)).toMatchObject({ code: 'INVALID_EVENT', message: expect.stringMatching(problem) });
  expect(() => refuseUnpublishable(minted(change), undefined)).not.toThrow();
});

test('a key may have 1,024 bytes', () => {
  expect(refusal({ aggregate: { type: 'order', id: '€'.repeat(341) } })).toBeUndefined();
});

test('an outbox has no other relay than cdc', () => {
  for (const relay of [undefined, 'cdc'])
    expect(() => refuseOtherRelay('createMysqlOutbox', relay)).not.toThrow();
  expect(() => refuseOtherRelay('createMysqlOutbox', 'kafka')).toThrow('createMysqlOutbox: relay is "kafka"');
});
