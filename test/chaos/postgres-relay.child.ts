import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { busClientSettings } from '../../lambdas/runtime/base/client-settings.ts';
import { eventBridgeBus } from '../../lambdas/runtime/bus/eventbridge-bus.ts';
import { nodePostgres } from '../../lambdas/runtime/postgres/databases.ts';
import { postgresPool } from '../../lambdas/runtime/postgres/postgres-pool.ts';
import { createPostgresRelay } from '../../lambdas/runtime/postgres/postgres-relay.ts';
import {
  readPostgresRelayConfig,
  readPostgresSettings,
} from '../../lambdas/runtime/postgres/postgres-settings.ts';

/** The relay of PostgreSQL, as a process runs it in a container. */
const config = readPostgresRelayConfig(process.env);
const { busName, publishTimeoutMs } = config;
const relay = createPostgresRelay({
  config,
  database: nodePostgres(postgresPool(readPostgresSettings(process.env))),
  bus: eventBridgeBus({ client: new EventBridgeClient(busClientSettings(publishTimeoutMs)), busName }),
});
await relay.run();
