import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createPool } from 'mysql2/promise';
import { createOncePerKey } from '../../../runtime/http.ts';
import {
  clientSettings,
  powertoolsTelemetry,
  readProducerConfig,
  systemClock,
} from '../../../runtime/index.ts';
import { createMysqlOutbox, mysql2, mysqlPool, readMysqlSettings } from '../../../runtime/mysql.ts';
import { requiredEnv } from '../../required-env.ts';
import { createOrdersApi } from '../api.ts';
import { databaseOrders } from '../database-orders.ts';
import { createPlaceOrder } from '../place-order.ts';
import { MYSQL_ORDERS } from './mysql-orders.ts';

const config = readProducerConfig(process.env);
const { tableName } = config;
const payWithinSeconds = Number(requiredEnv('PAY_WITHIN_SECONDS'));
const { log } = powertoolsTelemetry({ service: config.service, tableName });
const database = mysql2(mysqlPool(createPool, readMysqlSettings(process.env)));
const orders = databaseOrders({
  database,
  outbox: createMysqlOutbox({ config, database }),
  statements: MYSQL_ORDERS,
});

/** The orders API with its orders in MySQL; the answers to repeated requests stay in the Mailroom table. */
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
