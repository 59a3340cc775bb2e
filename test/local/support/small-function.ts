import { createConsumer } from '../../../lambdas/runtime/index.ts';
import { memoryTelemetry } from '../../../testing/index.ts';
import type { handmadeMailroom, SmallConsumer } from './handmade-mailroom.ts';

type ConsumerDeps = Parameters<typeof createConsumer>[0];

/** The function that a consumer of a `handmadeMailroom` would have. @param changes - of its settings */
export function smallFunction(
  { config, table }: Awaited<ReturnType<typeof handmadeMailroom>>,
  { entry }: SmallConsumer,
  handlers: ConsumerDeps['handlers'],
  changes: Partial<ConsumerDeps['config']> = {},
) {
  return createConsumer({
    config: {
      ...config,
      consumer: entry.name,
      queueUrl: entry.queue,
      leaseMs: 30_000,
      visibilityTimeoutMs: 60_000,
      maxAttempts: entry.maxAttempts,
      retryFirstMs: 2_000,
      retryLongestMs: 900_000,
      inboxRetentionDays: entry.inboxRetentionDays,
      ...changes,
    },
    table,
    queue: { changeVisibility: async () => {} },
    handlers,
    telemetry: memoryTelemetry(),
  });
}
