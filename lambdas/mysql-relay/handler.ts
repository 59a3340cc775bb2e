import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { createPool } from 'mysql2/promise';
import { busClientSettings } from '../runtime/base/client-settings.ts';
import { eventBridgeBus } from '../runtime/bus/eventbridge-bus.ts';
import { mysql2 } from '../runtime/mysql/databases.ts';
import { mysqlPool } from '../runtime/mysql/mysql-pool.ts';
import { createMysqlRelayHandler } from '../runtime/mysql/mysql-relay.ts';
import { readMysqlRelayConfig, readMysqlSettings } from '../runtime/mysql/mysql-settings.ts';

const config = readMysqlRelayConfig(process.env);

/** The relay of a MySQL or MariaDB database, invoked each minute. */
export const handler = createMysqlRelayHandler({
  config,
  database: mysql2(mysqlPool(createPool, readMysqlSettings(process.env))),
  bus: eventBridgeBus({
    client: new EventBridgeClient(busClientSettings(config.publishTimeoutMs)),
    busName: config.busName,
  }),
});
