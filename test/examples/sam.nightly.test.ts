import { execFile, spawn } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Engine, startEngine } from '../../localstack/engine.ts';
import { freePort } from '../../localstack/free-port.ts';
import { ensureEnvironment, findPython } from '../../localstack/python-environment.ts';
import { eventually } from '../local/support/eventually.ts';
import type { CfnTemplate } from './cloudformation-parts.ts';
import { placedOrderIsReceipted } from './deployed-example.ts';
import { type ExampleCode, exampleCode } from './example-code.ts';
import { SAM_FILE, samTemplate } from './sam-template.ts';
import { uploadTo, xmlOf } from './unsigned-calls.ts';

/** The script in the environment's `bin` names the folder in which the environment was made, before it was renamed. */
const CFN_LINT = ['-c', 'import sys; from cfnlint.runner import main; sys.exit(main())'];

const BUCKET = 'mailroom-examples';

let code: ExampleCode;
let engine: Engine;
let python = '';

beforeAll(async () => {
  const found = await findPython();
  if (found === undefined) throw new Error('These tests need Python 3.10 or later.');
  const requirements = fileURLToPath(new URL('requirements.txt', import.meta.url));
  python = await ensureEnvironment({ python: found, requirements, proof: 'cfnlint, samtranslator' });
  code = await exampleCode(found);
  engine = await startEngine({ port: await freePort(), env: {} });
});

afterAll(async () => {
  await engine?.stop();
  if (code) await rm(code.folder, { recursive: true, force: true });
});

test('cfn-lint finds nothing in the SAM template', async () => {
  const { stdout } = await promisify(execFile)(python, [...CFN_LINT, SAM_FILE]);
  expect(stdout).toBe('');
});

test('cfn-lint does find a fault in the SAM template', async () => {
  const broken = (await readFile(SAM_FILE, 'utf8')).replace('BatchSize: 100', 'BatchSizes: 100');
  const child = spawn(python, CFN_LINT);
  child.stdin.end(broken);
  expect(await text(child.stdout)).toContain('BatchSizes');
});

test('what SAM makes of the template delivers an event', async () => {
  await uploadTo(engine.endpoint, BUCKET);
  const keys: Readonly<Record<string, keyof ExampleCode['zips']>> = {
    StreamRelay: 'stream_relay',
    Sweep: 'sweep',
    Audit: 'audit',
    PlaceOrder: 'place_order',
    Receipts: 'receipts',
  };
  const template = structuredClone(samTemplate()) as CfnTemplate;
  for (const [id, zip] of Object.entries(keys)) {
    await uploadTo(engine.endpoint, `${BUCKET}/${zip}.zip`, await readFile(code.zips[zip]));
    const properties = template.Resources[id]?.Properties ?? {};
    properties.CodeUri = `s3://${BUCKET}/${zip}.zip`;
    properties.Handler = 'index.handler';
  }
  const stack = await deploy(await transformed(template));
  await placedOrderIsReceipted(engine.endpoint, {
    table: stack.TableName,
    placeOrder: stack.PlaceOrderFunction,
  });
});

/** Applies the transform that AWS applies. */
async function transformed(template: CfnTemplate): Promise<string> {
  const script = fileURLToPath(new URL('transform.py', import.meta.url));
  const child = spawn(python, [script], { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(JSON.stringify(template));
  return text(child.stdout);
}

/** Creates the stack, and returns its outputs. */
async function deploy(
  body: string,
): Promise<{ readonly TableName: string; readonly PlaceOrderFunction: string }> {
  expect(Object.keys(JSON.parse(body).Resources)).toContain('SweepEventInvokeConfig');
  await xmlOf(engine.endpoint, 'cloudformation', {
    Action: 'CreateStack',
    StackName: 'shop',
    TemplateBody: body,
    'Capabilities.member.1': 'CAPABILITY_NAMED_IAM',
  });
  const described = await eventually(async () => {
    const xml = await xmlOf(engine.endpoint, 'cloudformation', {
      Action: 'DescribeStacks',
      StackName: 'shop',
    });
    expect(xml).toMatch(/<StackStatus>CREATE_COMPLETE|<StackStatus>ROLLBACK|<StackStatus>CREATE_FAILED/);
    return xml;
  });
  expect(described).toContain('<StackStatus>CREATE_COMPLETE');
  const output = (key: string) =>
    new RegExp(`<OutputKey>${key}</OutputKey>\\s*<OutputValue>([^<]+)`).exec(described)?.[1] ?? '';
  return { TableName: output('TableName'), PlaceOrderFunction: output('PlaceOrderFunction') };
}
