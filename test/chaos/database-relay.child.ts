import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { createPool } from 'mysql2/promise';
import { busClientSettings } from '../../lambdas/runtime/base/client-settings.ts';
import { eventBridgeBus } from '../../lambdas/runtime/bus/eventbridge-bus.ts';
import { mysql2 } from '../../lambdas/runtime/mysql/databases.ts';
import { mysqlPool } from '../../lambdas/runtime/mysql/mysql-pool.ts';
import { createMysqlRelay } from '../../lambdas/runtime/mysql/mysql-relay.ts';
import { readMysqlRelayConfig, readMysqlSettings } from '../../lambdas/runtime/mysql/mysql-settings.ts';
import { nodePostgres } from '../../lambdas/runtime/postgres/databases.ts';
import { postgresPool } from '../../lambdas/runtime/postgres/postgres-pool.ts';
import { createPostgresRelay } from '../../lambdas/runtime/postgres/postgres-relay.ts';
import { readPostgresSettings } from '../../lambdas/runtime/postgres/postgres-settings.ts';

/** The relay of the database whose address it has, as a process runs it in a container. */
const config = readMysqlRelayConfig(process.env);
const { busName, publishTimeoutMs } = config;
const bus = eventBridgeBus({ client: new EventBridgeClient(busClientSettings(publishTimeoutMs)), busName });
const relay =
  process.env.MAILROOM_MYSQL === undefined
    ? createPostgresRelay({
        config,
        database: nodePostgres(postgresPool(readPostgresSettings(process.env))),
        bus,
      })
    : createMysqlRelay({
        config,
        database: mysql2(mysqlPool(createPool, readMysqlSettings(process.env))),
        bus,
      });
await relay.run();
