import { rename, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import {
  LambdaClient,
  ListEventSourceMappingsCommand,
  UpdateEventSourceMappingCommand,
} from '@aws-sdk/client-lambda';
import { SSMClient } from '@aws-sdk/client-ssm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { required } from '../../demo/readings.ts';
import { readDirectory } from '../../lambdas/runtime/operations/ssm-directory.ts';
import type { Outputs } from '../../localstack/cdk-process.ts';
import { deployLocal } from '../../localstack/deploy.ts';
import { type Engine, startEngine } from '../../localstack/engine.ts';
import { freePort } from '../../localstack/free-port.ts';
import { LOCAL_REGION, localFile } from '../../localstack/workspace.ts';
import { unwrapped } from '../support/captured-io.ts';
import { runAwsLine } from './support/aws-line.ts';
import { eventually } from './support/eventually.ts';
import { mailroomAt } from './support/mailroom.ts';

let engine: Engine;
let outputs: Outputs;

beforeAll(async () => {
  // An engine of its own: the other tests count the events of theirs.
  engine = await startEngine({ port: await freePort(), env: {} });
  const appDir = fileURLToPath(new URL('heartbeat', import.meta.url));
  outputs = await deployLocal({ endpoint: engine.endpoint, appDir });
});

afterAll(async () => {
  await engine?.stop();
  if (engine?.logFile) await rename(engine.logFile, localFile('engine-of-heartbeat.log'));
  await rm(localFile(`outputs-${engine?.port}.json`), { force: true });
});

const settings = () => ({
  endpoint: engine.endpoint,
  region: LOCAL_REGION,
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
});

async function disableMapping(consumer: string): Promise<void> {
  const { consumers } = await readDirectory(new SSMClient(settings()), required(outputs, 'TableName'));
  const FunctionName = consumers.find(({ name }) => name === consumer)?.function;
  const lambda = new LambdaClient(settings());
  const { EventSourceMappings: [mapping] = [] } = await lambda.send(
    new ListEventSourceMappingsCommand({ FunctionName }),
  );
  await lambda.send(new UpdateEventSourceMappingCommand({ UUID: mapping?.UUID, Enabled: false }));
}

/** Waits for a heartbeat that both consumers have acknowledged. @returns its event id */
const acknowledged = () =>
  eventually(async () => {
    const { json } = await mailroomAt(engine.endpoint, 'status', '--json');
    const { heartbeat } = json();
    expect(heartbeat).toMatchObject({ state: 'ok', acknowledged: 2, waiting: [], late: [] });
    return String(heartbeat.eventId);
  });

test('a scheduled heartbeat passes the whole path, and a consumer that receives nothing is late until it does', async () => {
  const eventId = await acknowledged();
  const why = await mailroomAt(engine.endpoint, 'why', eventId, '--json');
  expect(why.code, why.out).toBe(0);
  expect(why.json().events).toMatchObject([
    {
      type: 'Heartbeat',
      status: 'PUBLISHED',
      consumers: { payments: 'PROCESSED', shipping: 'PROCESSED' },
    },
  ]);
  const well = await mailroomAt(engine.endpoint, 'status');
  expect(unwrapped(well.out)).toMatch(/heartbeat \d+ \w+.* ago/);

  await disableMapping('shipping');
  const { code, out } = await eventually(async () => {
    const { json } = await mailroomAt(engine.endpoint, 'status', '--json');
    expect(json().heartbeat).toMatchObject({ state: 'late', late: [{ consumer: 'shipping' }] });
    return mailroomAt(engine.endpoint, 'status');
  });
  expect(code).toBe(1);
  expect(unwrapped(out)).toContain('not yet acknowledged by shipping');
  const fix = out.split('\n').filter((line) => line.startsWith('    aws '));
  expect(fix).toHaveLength(1);
  for (const line of fix) await runAwsLine(line);

  expect(await acknowledged()).not.toBe(eventId);
});

test('a paused consumer receives nothing until it is resumed, and every command names the pause instead of a fault', async () => {
  const at = (...argv: string[]) => mailroomAt(engine.endpoint, ...argv);
  const before = await acknowledged();
  const pause = await at('pause', 'shipping', '--apply', '--reason', 'the warehouse moves');
  expect(pause.code, pause.out + pause.err).toBe(0);
  const { json, out } = await at('status', '--json');
  expect(json().wiring.problems, out).toMatchObject([{ part: 'shipping', problem: 'paused' }]);
  expect(unwrapped((await at('status')).out)).toMatch(
    /shipping has been paused since .*: the warehouse moves/,
  );
  expect(unwrapped((await at('doctor')).out)).toContain('1 consumer paused');

  const waiting = await eventually(async () => {
    const { heartbeat } = (await at('status', '--json')).json();
    expect(heartbeat.eventId).not.toBe(before);
    expect(heartbeat.acknowledged).toBe(1);
    return String(heartbeat.eventId);
  });
  const why = await at('why', waiting);
  expect(unwrapped(why.out)).toMatch(/shipping has been paused since .*: the warehouse moves/);
  expect(why.out).toContain('npx cdk-mailroom resume shipping');

  const resume = await at('resume', 'shipping', '--apply', '--reason', 'the warehouse has moved');
  expect(resume.code, resume.out + resume.err).toBe(0);
  expect((await at('status', '--json')).json().wiring.problems).toEqual([]);
  await eventually(async () => {
    const { events } = (await at('why', waiting, '--json')).json();
    expect(events).toMatchObject([{ consumers: { payments: 'PROCESSED', shipping: 'PROCESSED' } }]);
  });
});
