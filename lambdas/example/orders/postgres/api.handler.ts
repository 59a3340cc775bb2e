import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createOncePerKey } from '../../../runtime/http.ts';
import {
  clientSettings,
  powertoolsTelemetry,
  readProducerConfig,
  systemClock,
} from '../../../runtime/index.ts';
import {
  createPostgresOutbox,
  nodePostgres,
  postgresPool,
  readPostgresSettings,
} from '../../../runtime/postgres.ts';
import { requiredEnv } from '../../required-env.ts';
import { createOrdersApi } from '../api.ts';
import { databaseOrders } from '../database-orders.ts';
import { createPlaceOrder } from '../place-order.ts';
import { POSTGRES_ORDERS } from './postgres-orders.ts';

const config = readProducerConfig(process.env);
const { tableName } = config;
const payWithinSeconds = Number(requiredEnv('PAY_WITHIN_SECONDS'));
const { log } = powertoolsTelemetry({ service: config.service, tableName });
const database = nodePostgres(postgresPool(readPostgresSettings(process.env)));
const orders = databaseOrders({
  database,
  outbox: createPostgresOutbox({ config, database }),
  statements: POSTGRES_ORDERS,
});

/** The orders API with its orders in PostgreSQL; the answers to repeated requests stay in the Mailroom table. */
export const handler = createOrdersApi({
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
