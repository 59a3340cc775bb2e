import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createOncePerKey } from '../../runtime/http.ts';
import {
  clientSettings,
  type ProducerConfig,
  powertoolsTelemetry,
  systemClock,
} from '../../runtime/index.ts';
import { requiredEnv } from '../required-env.ts';
import { createOrdersApi } from './api.ts';
import { type DatabaseOrdersDeps, databaseOrders } from './database-orders.ts';
import { createPlaceOrder } from './place-order.ts';

/** The orders API with its orders in a database. */
export function databaseOrdersApi<Tx>({ service, tableName }: ProducerConfig, deps: DatabaseOrdersDeps<Tx>) {
  const payWithinSeconds = Number(requiredEnv('PAY_WITHIN_SECONDS'));
  const { log } = powertoolsTelemetry({ service, tableName });
  const orders = databaseOrders(deps);
  return createOrdersApi({
    placeOrder: createPlaceOrder({
      orders,
      clock: systemClock,
      oncePerKey: createOncePerKey({
        client: new DynamoDBClient(clientSettings),
        tableName,
        operation: 'orders',
      }),
      payWithinSeconds,
    }),
    orders,
    payWithinSeconds,
    onError: (message, error) => log.error(message, error),
  });
}
