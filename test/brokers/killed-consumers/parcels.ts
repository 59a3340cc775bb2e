import { z } from 'zod/mini';
import { defineEvent } from '../../../lambdas/runtime/events/event.ts';
import type { InboxConfig } from '../../../lambdas/runtime/sources.ts';
import { consumerConfig } from '../../../testing/index.ts';

/** The event that these consumers handle. */
export const ParcelPacked = defineEvent({
  source: 'parcels',
  type: 'ParcelPacked',
  aggregateType: 'Parcel',
  version: 1,
  schema: z.object({ n: z.int() }),
});

/** The settings of the consumer, in every process. Its leases are short, because its processes are killed. */
export const sourceConfig: InboxConfig = consumerConfig({
  service: 'parcels',
  publishes: 'any',
  consumer: 'worker',
  leaseMs: 3_000,
});

/** The partition of the rows that count the effects of each event. */
export const EFFECTS = 'EFFECTS#1';

/** The place of the dead letters of a topic, stream or queue. */
export const deadOf = (name: string) => `${name}-dead`;
