import { randomUUID } from 'node:crypto';
import { rename, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { SSMClient } from '@aws-sdk/client-ssm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkBodies } from '../../cli/frame/invoke.ts';
import { required } from '../../demo/readings.ts';
import { readDirectory } from '../../lambdas/runtime/operations/ssm-directory.ts';
import type { Outputs } from '../../localstack/cdk-process.ts';
import { deployLocal } from '../../localstack/deploy.ts';
import { type Engine, startEngine } from '../../localstack/engine.ts';
import { freePort } from '../../localstack/free-port.ts';
import { LOCAL_REGION, localFile } from '../../localstack/workspace.ts';
import { eventually } from './support/eventually.ts';
import { mailroomAt } from './support/mailroom.ts';

let engine: Engine;
let outputs: Outputs;

beforeAll(async () => {
  // An engine of its own: that of the other tests has the outputs of another app.
  engine = await startEngine({ port: await freePort(), env: {} });
  const appDir = fileURLToPath(new URL('existing-function', import.meta.url));
  outputs = await deployLocal({ endpoint: engine.endpoint, appDir });
});

afterAll(async () => {
  await engine?.stop();
  if (engine?.logFile) await rename(engine.logFile, localFile('engine-of-existing-function.log'));
  await rm(localFile(`outputs-${engine?.port}.json`), { force: true });
});

const settings = () => ({
  endpoint: engine.endpoint,
  region: LOCAL_REGION,
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
});

async function reservations() {
  const { consumers } = await readDirectory(new SSMClient(settings()), required(outputs, 'TableName'));
  const found = consumers.find(({ name }) => name === 'reservations');
  if (found === undefined) throw new Error('The directory has no consumer reservations');
  return found;
}

test('an existing function behind an alias publishes an order, and processes it from its queue', async () => {
  const { function: FunctionName, alias } = await reservations();
  expect(alias).toBe('live');
  const invocation = { FunctionName, Qualifier: alias, Payload: JSON.stringify({ orderId: randomUUID() }) };
  const { Payload, FunctionError } = await new LambdaClient(settings()).send(new InvokeCommand(invocation));
  const answer = Buffer.from(Payload ?? []).toString();
  expect(FunctionError, answer).toBeUndefined();
  const eventId = String(JSON.parse(answer));
  await eventually(async () => {
    const why = await mailroomAt(engine.endpoint, 'why', eventId, '--json');
    expect(why.json().events).toMatchObject([{ consumers: { reservations: 'PROCESSED' } }]);
  });
});

test('its mapping, settings and messages are checked through the alias', async () => {
  const doctor = await mailroomAt(engine.endpoint, 'doctor', '--json');
  const { problems = [] } = doctor.json();
  expect(problems.filter(({ part }: { part: string }) => part === 'reservations')).toEqual([]);
  const { json } = await mailroomAt(engine.endpoint, 'describe', 'reservations', '--json');
  expect(json()).toMatchObject({ alias: 'live', deployed: { mappings: [{ state: 'Enabled' }] } });
  const checks = await checkBodies(new LambdaClient(settings()), await reservations(), ['not an event']);
  expect(checks).toHaveLength(1);
});
