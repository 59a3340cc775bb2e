import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { busClientSettings, portClientSettings } from '../../lambdas/runtime/base/client-settings.ts';
import { type Clock, systemClock } from '../../lambdas/runtime/base/clock.ts';
import { readRelayConfig } from '../../lambdas/runtime/base/config.ts';
import { eventBridgeBus } from '../../lambdas/runtime/bus/eventbridge-bus.ts';
import { dynamoTable } from '../../lambdas/runtime/store/dynamo-table.ts';

/** The parts of the relay's functions, created as in `lambdas/relay-*\/handler.ts`. */
export function relayPorts() {
  const config = readRelayConfig(process.env);
  const dynamodb = new DynamoDBClient(portClientSettings);
  const eventbridge = new EventBridgeClient(busClientSettings(config.publishTimeoutMs));
  return {
    deps: {
      config,
      table: dynamoTable({ client: dynamodb, tableName: config.tableName }),
      bus: eventBridgeBus({ client: eventbridge, busName: config.busName }),
    },
  };
}

/** A clock that can be reset, so that the same rows are new, or due, again. */
export interface RoundClock extends Clock {
  /** Resets the clock to its start time. */
  putBack(): void;
}

/** @param start - epoch milliseconds */
export function roundClock(start: number): RoundClock {
  let putBackAt = Date.now();
  return {
    now: () => start + Date.now() - putBackAt,
    sleep: systemClock.sleep,
    putBack: () => {
      putBackAt = Date.now();
    },
  };
}

/** Sends the result to the parent process, and exits. */
export function answer(found: object): void {
  process.send?.(found, () => process.disconnect());
}
