import { readFileSync, writeSync } from 'node:fs';
import { dynamoTable, leased } from '../../../lambdas/runtime/index.ts';
import { createInboxProcessor } from '../../../lambdas/runtime/sources.ts';
import { memoryTelemetry } from '../../../testing/index.ts';
import { dynamoClient } from '../../support/aws.ts';
import { bridgeConfig, ParcelPacked } from '../targets/bridge.ts';
import { consume } from './consume.ts';
import type { SourceProcessOptions } from './source-process.ts';

const [, , input = ''] = process.argv;
const options = JSON.parse(readFileSync(input, 'utf8')) as SourceProcessOptions;
const { endpoint, tableName, killed, failsOnce } = options;

// The end of the test process ends this one.
process.stdin.resume().once('end', () => process.exit(3));

/** Kills this process when it is called for the third time. */
function killing(when: SourceProcessOptions['killed']): () => void {
  let calls = 0;
  return () => {
    calls += 1;
    if (killed === when && calls === 3) process.kill(process.pid, 'SIGKILL');
  };
}

const inHandler = killing('in-handler');
const failed = new Set<number>();
const handler = leased(ParcelPacked, async ({ eventId, aggregateId, data }, { commit }) => {
  writeSync(1, `handles ${eventId} ${aggregateId}\n`);
  inHandler();
  if (data.n === failsOnce && !failed.has(data.n)) {
    failed.add(data.n);
    throw new Error('It fails once.');
  }
  const update = { UpdateExpression: 'ADD runs :one', ExpressionAttributeValues: { ':one': 1 } };
  await commit({ writes: [{ Update: { Key: { PK: `EFFECT#${eventId}`, SK: 'EFFECT' }, ...update } }] });
});

const inbox = createInboxProcessor({
  // A message of a killed process waits for its lease.
  config: { ...bridgeConfig, consumer: 'source', tableName, leaseMs: 3_000, retryFirstMs: 1_000 },
  table: dynamoTable({ client: dynamoClient(endpoint), tableName }),
  telemetry: memoryTelemetry(),
});
const { stop, ended } = await consume({
  ...options,
  inbox,
  handler,
  beforeAck: killing('before-ack'),
});
process.once('SIGTERM', () => void stop().then(() => process.exit(0)));
writeSync(1, 'ready\n');
ended.catch((error) => {
  console.error(`The source ended: ${error}`);
  process.exit(2);
});
