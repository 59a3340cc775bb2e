import { readFile } from 'node:fs/promises';
import { type BridgeTarget, bridge } from '../../../lambdas/runtime/bridge.ts';
import { createConsumer, dynamoTable, systemClock } from '../../../lambdas/runtime/index.ts';
import { lambdaContext, memoryTelemetry } from '../../../testing/index.ts';
import { dynamoClient } from '../../support/aws.ts';
import { bridgeConfig, ParcelPacked } from './bridge.ts';
import type { BridgeInvocation } from './bridge-invocation.ts';
import { targetOf } from './target-of.ts';

const [, , input = ''] = process.argv;
const invocation = JSON.parse(await readFile(input, 'utf8')) as BridgeInvocation;
const { endpoint, tableName, place, record, laterMs = 0, isKilled = false } = invocation;

const clock = { ...systemClock, now: () => Date.now() + laterMs };

/** Dies between the answer of the target and the write of the row. */
function killedAfterSend(target: BridgeTarget): BridgeTarget {
  return {
    ...target,
    send: async (entries) => {
      const results = await target.send(entries);
      if (!results.every(({ ok }) => ok)) throw new Error(`The target refused: ${JSON.stringify(results)}`);
      process.kill(process.pid, 'SIGKILL');
      return results;
    },
  };
}

const target = targetOf(place);
const consume = createConsumer({
  config: { ...bridgeConfig, tableName },
  table: dynamoTable({ client: dynamoClient(endpoint), tableName }),
  queue: { changeVisibility: async () => {} },
  handlers: bridge({ to: isKilled ? killedAfterSend(target) : target, events: [ParcelPacked] }),
  clock,
  telemetry: memoryTelemetry(),
});
console.log(JSON.stringify(await consume({ Records: [record] }, lambdaContext({ clock }))));
// The connection to the target is kept for the next invocation.
process.exit();
