import type { Scenario } from './scenario.ts';
import { badEventInBatch } from './scenarios/bad-event-in-batch.ts';
import { busOutage } from './scenarios/bus-outage.ts';
import { duplicateDelivery } from './scenarios/duplicate-delivery.ts';
import { lostHeartbeat } from './scenarios/lost-heartbeat.ts';
import { manualFix } from './scenarios/manual-fix.ts';
import { mysqlKilled } from './scenarios/mysql-killed.ts';
import { outOfOrder } from './scenarios/out-of-order.ts';
import { poison } from './scenarios/poison.ts';
import { postgresKilled } from './scenarios/postgres-killed.ts';
import { relayKilled } from './scenarios/relay-killed.ts';
import { slowHandler } from './scenarios/slow-handler.ts';
import { spike } from './scenarios/spike.ts';
import { streamGap } from './scenarios/stream-gap.ts';
import { stuckClaim } from './scenarios/stuck-claim.ts';
import { timerAgainstPayment } from './scenarios/timer-against-payment.ts';
import { workerKill } from './scenarios/worker-kill.ts';

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
  outOfOrder,
  timerAgainstPayment,
  // The last one of its system: it leaves thousands of rows behind, and every look at the table reads them.
  spike,
  postgresKilled,
  mysqlKilled,
];
