import type { PostgresRelayConfig } from '../../../lambdas/runtime/postgres/postgres-settings.ts';

/** The settings of a relay, without a wait that a test would have to sit out. */
export function relayConfig(settings: Partial<PostgresRelayConfig> = {}): PostgresRelayConfig {
  return {
    tableName: 'Mailroom',
    busName: 'bus',
    claimLeaseMs: 30_000,
    publishTimeoutMs: 5_000,
    maxAttempts: 3,
    publishedRetentionDays: 7,
    sources: ['orders'],
    pollMs: 50,
    ...settings,
  };
}
