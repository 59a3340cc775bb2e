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

test('the id of a finding is one word', () => {
  expect(findingId({ code: 'mapping-disabled', part: 'stream relay' })).toBe('mapping-disabled/stream-relay');
  expect(findingId({ code: 'retention', part: 'payments', resource: 'inbox' })).toBe(
    'retention/payments/inbox',
  );
});
