import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { busClientSettings } from '../runtime/base/client-settings.ts';
import { eventBridgeBus } from '../runtime/bus/eventbridge-bus.ts';
import { nodePostgres } from '../runtime/postgres/databases.ts';
import { postgresPool } from '../runtime/postgres/postgres-pool.ts';
import { createPostgresRelayHandler } from '../runtime/postgres/postgres-relay.ts';
import { readPostgresRelayConfig, readPostgresSettings } from '../runtime/postgres/postgres-settings.ts';

const config = readPostgresRelayConfig(process.env);

/** The relay of a PostgreSQL database, invoked each minute. */
export const handler = createPostgresRelayHandler({
  config,
  database: nodePostgres(postgresPool(readPostgresSettings(process.env))),
  bus: eventBridgeBus({
    client: new EventBridgeClient(busClientSettings(config.publishTimeoutMs)),
    busName: config.busName,
  }),
});
