import { expect, test } from 'vitest';
import { ackOf } from '../../../cli/reports/status/acknowledgements.ts';

const ack = { cause: 'payments', until: 10, by: 'ada', reason: 'INC-7', at: 0 };
const paused = 'the subscription of payments is paused';
const deadLetters = '1 dead letter in consumer:payments';

test('an acknowledgement of findings without a count does not hide dead letters that arrive later', () => {
  const acks = [{ ...ack, upTo: null }];
  expect(ackOf(paused, acks, 1)).toMatchObject({ by: 'ada' });
  expect(ackOf(deadLetters, acks, 1)).toBeUndefined();
});

test('a limit on the count covers counted findings up to it', () => {
  const acks = [{ ...ack, upTo: 1 }];
  expect(ackOf(deadLetters, acks, 1)).toMatchObject({ by: 'ada' });
  expect(ackOf('2 dead letters in consumer:payments', acks, 1)).toBeUndefined();
});
