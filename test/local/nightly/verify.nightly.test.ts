import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Outputs } from '../../../localstack/cdk-process.ts';
import { deployLocal } from '../../../localstack/deploy.ts';
import { type Engine, startEngine } from '../../../localstack/engine.ts';
import { freePort } from '../../../localstack/free-port.ts';
import { localEnvironment } from '../../../localstack/workspace.ts';
import { leftBehind } from '../../../verify/left-behind.ts';
import { runVerify } from '../support/verify-command.ts';

/** What no local engine shows: it enforces no IAM, and MiniStack 1.5.33 has no move task. In the order of the tests. */
const NOT_SHOWN = [
  "IAM: a consumer's role is denied what it may not do",
  "IAM: a producer's role is denied what it may not do",
  "IAM: the relay's role is denied what it may not do",
  'IAM: a role with every right is denied what it may not do',
  "SQS's own move task: a dead letter is processed once its cause is gone",
];

const RUN = ['--local', '--orders', '10', '--json'];

let engine: Engine;
/** Another deployment on the same engine, which no run may touch. */
let beside: Outputs;
let env: Record<string, string>;

beforeAll(async () => {
  engine = await startEngine({ port: await freePort(), env: {} });
  env = { AWS_ENDPOINT_URL: engine.endpoint };
  Object.assign(process.env, localEnvironment(engine.endpoint));
  beside = await deployLocal({ endpoint: engine.endpoint });
});

afterAll(() => engine.stop());

test('npm run verify passes on a local engine, lists what that cannot show, and destroys what it deployed', async () => {
  const before = await leftBehind(beside);
  const { code, err, out, receipt } = await runVerify(RUN, { env });
  expect(code, `${err}${out}`).toBe(0);
  const { checks, ...run } = receipt();
  expect(run).toMatchObject({ target: 'local', verdict: 'passed', destroyed: true, estimatedUsd: 0 });
  expect(run).not.toHaveProperty('destroyCommand');
  expect(checks.length).toBeGreaterThan(40);
  const of = (wanted: string) => checks.filter(({ outcome }) => outcome === wanted).map(({ check }) => check);
  expect(of('failed')).toEqual([]);
  expect(of('not-shown')).toEqual(NOT_SHOWN);
  expect(before.length).toBeGreaterThan(0);
  expect(await leftBehind(beside)).toEqual(before);
});

test.each([
  ['while it deploys', 'Deploying the stacks'],
  ['while its tests run', 'Running test/account/demo'],
])('Ctrl-C %s destroys what was deployed', async (_, at) => {
  const { code, err, receipt } = await runVerify(RUN, { env, interrupt: { at, signal: 'SIGINT' } });
  expect(code, err).toBe(130);
  expect(receipt()).toMatchObject({ verdict: 'stopped', destroyed: true });
  expect(receipt().checks.filter(({ outcome }) => outcome === 'failed')).toEqual([]);
});

test('what a killed run left is destroyed by the command that it printed', async () => {
  const interrupt = { at: 'Running test/account/demo', signal: 'SIGKILL' } as const;
  const killed = await runVerify(RUN, { env, interrupt });
  expect(killed.code).toBeNull();
  const [, name = ''] = /npm run verify -- --local --destroy (\S+)/.exec(killed.err) ?? [];
  const { code, err, receipt } = await runVerify(['--local', '--destroy', name, '--json'], { env });
  expect(code, err).toBe(0);
  expect(receipt()).toMatchObject({ name, verdict: 'passed', destroyed: true });
});
