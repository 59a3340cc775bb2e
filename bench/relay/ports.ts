import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { eventBridgeBus } from '../../lambdas/runtime/bus/eventbridge-bus.ts';
import { clientSettings } from '../../lambdas/runtime/client-settings.ts';
import { type Clock, systemClock } from '../../lambdas/runtime/clock.ts';
import { readRelayConfig } from '../../lambdas/runtime/config.ts';
import { dynamoTable } from '../../lambdas/runtime/store/dynamo-table.ts';

/** What the relay's functions are made of, made as `lambdas/relay-*\/handler.ts` make it, and the clients themselves. */
export function relayPorts() {
  const config = readRelayConfig(process.env);
  const dynamodb = new DynamoDBClient(clientSettings);
  const eventbridge = new EventBridgeClient({ logger: clientSettings.logger, maxAttempts: 1 });
  return {
    dynamodb,
    eventbridge,
    deps: {
      config,
      table: dynamoTable({ client: dynamodb, tableName: config.tableName }),
      bus: eventBridgeBus({ client: eventbridge, busName: config.busName }),
    },
  };
}

/** A clock that can be put back, so that the same rows are new, or due, again. */
export interface RoundClock extends Clock {
  /** From now on it is again the time that the clock was made with. */
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

/** Tells whoever started this process what it found, and ends. */
export function answer(found: object): void {
  process.send?.(found, () => process.disconnect());
}
