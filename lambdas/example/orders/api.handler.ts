import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createOncePerKey } from '../../runtime/http.ts';
import {
  clientSettings,
  createOutbox,
  dynamoTable,
  powertoolsTelemetry,
  readProducerConfig,
  systemClock,
} from '../../runtime/index.ts';
import { requiredEnv } from '../required-env.ts';
import { createOrdersApi } from './api.ts';
import { tableOrders } from './order-records.ts';
import { createPlaceOrder } from './place-order.ts';

const config = readProducerConfig(process.env);
const client = new DynamoDBClient(clientSettings);
const { tableName } = config;
const table = dynamoTable({ client, tableName });
const payWithinSeconds = Number(requiredEnv('PAY_WITHIN_SECONDS'));
const orders = tableOrders({ outbox: createOutbox({ config, table }), table });
const { log } = powertoolsTelemetry({ service: config.service, tableName });

/** The orders API, behind a Lambda function URL. */
export const handler = createOrdersApi({
  placeOrder: createPlaceOrder({
    orders,
    clock: systemClock,
    oncePerKey: createOncePerKey({ client, tableName, operation: 'orders' }),
    payWithinSeconds,
  }),
  orders,
  payWithinSeconds,
  onError: (message, error) => log.error(message, error),
});
