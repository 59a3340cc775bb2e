import { readProducerConfig } from '../../../runtime/index.ts';
import {
  createPostgresOutbox,
  nodePostgres,
  postgresPool,
  readPostgresSettings,
} from '../../../runtime/postgres.ts';
import { databaseOrdersApi } from '../database-api.ts';
import { POSTGRES_ORDERS } from './postgres-orders.ts';

const config = readProducerConfig(process.env);
const database = nodePostgres(postgresPool(readPostgresSettings(process.env)));

/** The orders API with its orders in PostgreSQL; the answers to repeated requests stay in the Mailroom table. */
export const handler = databaseOrdersApi(config, {
  database,
  outbox: createPostgresOutbox({ config, database }),
  statements: POSTGRES_ORDERS,
});
