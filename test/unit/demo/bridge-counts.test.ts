import { expect, test } from 'vitest';
import { bridgeCounts } from '../../../demo/bridge-counts.ts';
import type { WrittenEvent } from '../../../demo/readings.ts';
import type { Arrived } from '../../brokers/clients/arrived.ts';

const event = (eventId: string, type: string) => ({ envelope: { eventId, type } }) as never as WrittenEvent;

const message = (eventId: string): Arrived => ({ body: JSON.stringify({ eventId }), headers: {}, key: '' });

const events = [event('1', 'OrderPlaced'), event('2', 'PaymentCaptured'), event('3', 'OrderCancelled')];

const count = (...eventIds: string[]) => bridgeCounts('topic orders', events, eventIds.map(message));

test('every event that the bridge forwards has arrived', () => {
  expect(count('3', '1')).toEqual({ target: 'topic orders', sent: 2, received: 2, distinct: 2, lost: 0 });
});

test('an event that arrived twice is received twice, and not lost', () => {
  expect(count('1', '3', '1')).toMatchObject({ sent: 2, received: 3, distinct: 2, lost: 0 });
});

test('a missing event is lost, whatever arrived of others and of earlier runs', () => {
  expect(count('1', '1', '2', '4')).toMatchObject({ sent: 2, received: 2, distinct: 1, lost: 1 });
});
