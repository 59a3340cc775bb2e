import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { busClientSettings } from '../lambdas/runtime/base/client-settings.ts';
import type { Bus } from '../lambdas/runtime/bus/event-bus.ts';
import { eventBridgeBus } from '../lambdas/runtime/bus/eventbridge-bus.ts';
import type { DatabaseRelay, DatabaseRelayDeps } from '../lambdas/runtime/relay/database-relay.ts';
import type { Outputs } from '../localstack/cdk-process.ts';
import { memoryTelemetry } from '../testing/memory-telemetry.ts';
import { required } from './readings.ts';

/** A started database with the orders of the demo. */
export interface DemoDatabase {
  readonly server: {
    /** The address, as the functions receive it. */
    readonly url: string;
    /** Ends all its processes at once. */
    readonly kill: () => Promise<void>;
    /** Starts it after that. */
    readonly recover: () => Promise<void>;
  };
  /** The context values with which the order system has its orders there. */
  readonly context: Readonly<Record<string, string>>;
  /** Starts the relay, as a process does in a container: it publishes to the bus of a deployment. */
  readonly startRelay: (outputs: Outputs) => void;
  /** Its orders, events and inbox rows, as items of a table. */
  readonly items: () => Promise<Record<string, unknown>[]>;
  /** Stops the relay and the server, and removes its data. */
  readonly close: () => Promise<void>;
}

const PUBLISH_TIMEOUT_MS = 10_000;

/** Starts a relay. @returns stops it */
export function startDemoRelay(
  outputs: Outputs,
  create: (deps: DatabaseRelayDeps) => DatabaseRelay,
): () => Promise<void> {
  const busName = required(outputs, 'EventBusName');
  const bus: Bus = eventBridgeBus({
    client: new EventBridgeClient(busClientSettings(PUBLISH_TIMEOUT_MS)),
    busName,
  });
  const relay = create({
    config: {
      tableName: 'mailroom',
      busName,
      claimLeaseMs: 30_000,
      publishTimeoutMs: PUBLISH_TIMEOUT_MS,
      maxAttempts: 20,
      publishedRetentionDays: 7,
      sources: ['orders'],
      pollMs: 200,
    },
    bus,
    telemetry: memoryTelemetry(),
  });
  void relay.run();
  return relay.stop;
}
