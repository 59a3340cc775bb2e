import { badEventInBatch } from './bad-event-in-batch.ts';
import { busOutage } from './bus-outage.ts';
import { duplicateDelivery } from './duplicate-delivery.ts';
import { lostHeartbeat } from './lost-heartbeat.ts';
import { manualFix } from './manual-fix.ts';
import { poison } from './poison.ts';
import { relayKilled } from './relay-killed.ts';
import type { Scenario } from './scenario.ts';
import { slowHandler } from './slow-handler.ts';
import { spike } from './spike.ts';
import { streamGap } from './stream-gap.ts';
import { stuckClaim } from './stuck-claim.ts';
import { workerKill } from './worker-kill.ts';

/** Every scenario, in the order in which they run. */
export const SCENARIOS: readonly Scenario[] = [
  duplicateDelivery,
  busOutage,
  streamGap,
  relayKilled,
  badEventInBatch,
  stuckClaim,
  slowHandler,
  lostHeartbeat,
  manualFix,
  poison,
  workerKill,
  // The last one: it leaves thousands of rows behind, and every look at the table reads them.
  spike,
];
