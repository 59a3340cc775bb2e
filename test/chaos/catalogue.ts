import { badEventInBatch } from './bad-event-in-batch.ts';
import { busOutage } from './bus-outage.ts';
import { duplicateDelivery } from './duplicate-delivery.ts';
import { relayKilled } from './relay-killed.ts';
import type { Scenario } from './scenario.ts';
import { streamGap } from './stream-gap.ts';

/** Every scenario, in the order in which they run. */
export const SCENARIOS: readonly Scenario[] = [
  duplicateDelivery,
  busOutage,
  streamGap,
  relayKilled,
  badEventInBatch,
];
