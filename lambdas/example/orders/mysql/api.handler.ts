import { createPool } from 'mysql2/promise';
import { readProducerConfig } from '../../../runtime/index.ts';
import { createMysqlOutbox, mysql2, mysqlPool, readMysqlSettings } from '../../../runtime/mysql.ts';
import { databaseOrdersApi } from '../database-api.ts';
import { MYSQL_ORDERS } from './mysql-orders.ts';

const config = readProducerConfig(process.env);
const database = mysql2(mysqlPool(createPool, readMysqlSettings(process.env)));

/** The orders API with its orders in MySQL; the answers to repeated requests stay in the Mailroom table. */
export const handler = databaseOrdersApi(config, {
  database,
  outbox: createMysqlOutbox({ config, database }),
  statements: MYSQL_ORDERS,
});
