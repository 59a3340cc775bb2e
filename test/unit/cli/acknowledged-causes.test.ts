import { expect, test } from 'vitest';
import { ackOf } from '../../../cli/reports/findings/acknowledgements.ts';
import { findingId } from '../../../cli/reports/findings/findings.ts';

const ack = { until: 10, by: 'ada', reason: 'INC-7', at: 0 };
const deadLetters = { id: 'dead-letters/consumer:payments', count: 1 };
const paused = { id: 'paused/payments', count: null };

test('an acknowledgement ends with its time', () => {
  const acks = [{ ...ack, finding: paused.id, upTo: null }];
  expect(ackOf(paused, acks, 9)).toMatchObject({ by: 'ada' });
  expect(ackOf(paused, acks, 10)).toBeUndefined();
});

test('an acknowledgement covers its finding only, up to its count', () => {
  const acks = [{ ...ack, finding: deadLetters.id, upTo: 12 }];
  expect(ackOf({ ...deadLetters, count: 12 }, acks, 1)).toMatchObject({ by: 'ada' });
  expect(ackOf({ ...deadLetters, count: 13 }, acks, 1)).toBeUndefined();
  expect(ackOf(paused, acks, 1)).toBeUndefined();
  expect(ackOf({ id: 'dead-letters/consumer:payments-eu', count: 1 }, acks, 1)).toBeUndefined();
});

test('an acknowledgement of one member of a resource covers no other member, and no other kind', () => {
  const [window, batch] = ['MaximumBatchingWindowInSeconds', 'BatchSize'].map((member) => ({
    id: findingId({ code: 'differs', part: 'payments', resource: `PaymentsMapping1A2B.${member}` }),
    count: null,
  }));
  const acks = [{ ...ack, finding: window?.id ?? '', upTo: null }];
  expect(ackOf({ ...window, count: null }, acks, 1)).toMatchObject({ by: 'ada' });
  expect(ackOf({ ...batch, count: null }, acks, 1)).toBeUndefined();
  expect(
    ackOf({ id: window?.id.replace('differs', 'settings') ?? '', count: null }, acks, 1),
  ).toBeUndefined();
  // Two problems with one name: one of them was acknowledged.
  expect(ackOf({ ...window, count: 2 }, acks, 1)).toBeUndefined();
});

test('the id of a finding is one word', () => {
  expect(findingId({ code: 'mapping-disabled', part: 'stream relay' })).toBe('mapping-disabled/stream-relay');
  expect(findingId({ code: 'retention', part: 'payments', resource: 'inbox' })).toBe(
    'retention/payments/inbox',
  );
});
