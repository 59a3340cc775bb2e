import { expect, test } from 'vitest';
import type { Readings } from '../../../demo/readings.ts';
import { waitText } from '../../../demo/run-wait.ts';

const NOW = Date.UTC(2026, 0, 1);
const PROGRESS = { published: 4, processed: 6, expected: 7, finished: false, atRest: false };

const anOrder = (orderId: string, customerId: string) => ({
  ...{ orderId, customerId, items: [], totalCents: 900 },
  payment: 'pending' as const,
  stock: 'reserved' as const,
});

/** Readings with one open order, the scheduled event of its expiry, and the message that charges it. */
function aRun({
  order = anOrder('late', 'run-late'),
  others = [] as Readings['orders'],
  expiry = { status: 'PENDING', dueAt: NOW + 11_400 } as object,
  payment = { status: 'FAILED', retryAt: NOW + 9_000 } as object,
} = {}): Readings {
  const placed = { eventId: 'placed', type: 'OrderPlaced', aggregateId: order.orderId };
  const none = new Map();
  return {
    orders: [order, ...others],
    events: [{ row: { status: 'PUBLISHED' }, envelope: placed }],
    expiries: [{ row: expiry, envelope: { aggregateId: order.orderId } }],
    inbox: { payments: new Map([['placed', payment]]), inventory: none, notifications: none },
    queued: 1,
    deadLetters: 0,
  } as never as Readings;
}

const due = { status: 'PENDING', dueAt: NOW - 1 };
const published = { status: 'PUBLISHED', dueAt: NOW - 5_000 };
const unknown = anOrder('unknown', 'run-unknown');

test.each<[string, Parameters<typeof aRun>[0], string]>([
  ['an expiry that is not due', {}, 'the unpaid order expires in 12 s'],
  ['an expiry that is due', { expiry: due }, 'a sweep publishes the expiry of the unpaid order'],
  ['a payment that is retried', { expiry: published }, 'payments asks the bank once more in 9 s'],
  [
    'a payment that is due',
    { expiry: published, payment: { status: 'FAILED', retryAt: NOW - 1 } },
    '6/7 processed, 1 queued',
  ],
  [
    'the dead letter of a rejected payment',
    { order: unknown, payment: { status: 'REJECTED' } },
    'the dead letter of the payment that the bank refuses',
  ],
  ['several orders', { others: [unknown] }, '6/7 processed, 1 queued'],
])('a run names %s as the reason of its wait, in at most 54 characters', (_what, run, text) => {
  const shown = waitText(aRun(run), PROGRESS, NOW);
  expect(shown).toBe(text);
  expect(shown.length).toBeLessThanOrEqual(54);
});
