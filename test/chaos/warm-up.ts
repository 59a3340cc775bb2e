import { createReader } from '../../demo/readings.ts';
import { createShop, pause } from '../../demo/shop.ts';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { countOrders } from './counts.ts';
import type { OrderSystem } from './order-system.ts';

/** So many that most functions get two processes. */
const ORDERS = 10;
const ORDERS_PER_SECOND = 20;

const WARM_MAX_MS = 900_000;
const LOOK_EVERY_MS = 500;

/**
 * Lets some orders through before anything is broken: the functions start their processes now and not in the first
 * scenario, and a system that never works is told from one that does not stand a fault.
 *
 * @throws `CHAOS_WARM_UP` when the orders are not done in 15 minutes: only a system that does not work takes as long
 */
export async function warmUp({
  outputs,
  endpoint,
  database,
}: Pick<OrderSystem, 'outputs' | 'endpoint' | 'database'>): Promise<void> {
  const runId = `warm-up-${Date.now().toString(36)}`;
  const shop = createShop({ outputs, endpoint, runId });
  const reader = createReader(outputs, database?.items);
  await shop.stockUp();
  await shop.placeOrders(ORDERS, { ratePerSecond: ORDERS_PER_SECOND });
  const deadline = Date.now() + WARM_MAX_MS;
  for (;;) {
    const { lost } = countOrders(await reader.read(runId), ORDERS);
    if (lost === 0) return;
    if (Date.now() > deadline) {
      throw new MailroomError(
        'CHAOS_WARM_UP',
        `${lost} of ${ORDERS} orders were not done after ${WARM_MAX_MS / 1_000} s, with nothing broken. The log of ` +
          'the engine says why: .local/engine-of-chaos.log.',
      );
    }
    await pause(LOOK_EVERY_MS);
  }
}
