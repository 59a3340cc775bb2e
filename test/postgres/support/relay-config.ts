import type { DatabaseRelayConfig } from '../../../lambdas/runtime/relay/database-config.ts';

/** The settings of a relay, without a wait that a test would have to sit out. */
export function relayConfig(settings: Partial<DatabaseRelayConfig> = {}): DatabaseRelayConfig {
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
