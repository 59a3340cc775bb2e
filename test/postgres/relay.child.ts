import { Pool } from 'pg';
import { nodePostgres } from '../../lambdas/runtime/postgres/databases.ts';
import { createPostgresRelay } from '../../lambdas/runtime/postgres/postgres-relay.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { relayConfig } from './support/relay-config.ts';

/** A relay that prints the ids of the events that it has published, and then never gets to mark them. */
const relay = createPostgresRelay({
  config: relayConfig({ claimLeaseMs: 3_000, publishTimeoutMs: 200 }),
  database: nodePostgres(new Pool({ connectionString: process.env.POSTGRES_URL })),
  bus: {
    put: async (entries) => {
      console.log(entries.map(({ detail }) => JSON.parse(detail).eventId).join(' '));
      return new Promise(() => {});
    },
  },
  telemetry: memoryTelemetry(),
});
await relay.run();
