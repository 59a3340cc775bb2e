import {
  type Clock,
  createOutbox,
  type Outbox,
  systemClock,
  type Table,
} from '../../lambdas/runtime/index.ts';
import { producerConfig } from '../../testing/index.ts';

/** The outbox of the orders service, on a table in memory. */
export function ordersOutbox(table: Table, clock: Clock = systemClock): Outbox {
  return createOutbox({ config: producerConfig({ service: 'orders', shards: 1 }), table, clock });
}
