import { execFile } from 'node:child_process';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Engine, startEngine } from '../../localstack/engine.ts';
import { freePort } from '../../localstack/free-port.ts';
import { findPython } from '../../localstack/python-environment.ts';
import { localEnvironment, withoutAws } from '../../localstack/workspace.ts';
import { placedOrderIsReceipted } from './deployed-example.ts';
import { type ExampleCode, exampleCode } from './example-code.ts';

/** A folder with the AWS provider, for machines that cannot reach the registry of Terraform. */
const { TF_PLUGIN_DIR } = process.env;

/** Versions of the provider before 6.21 do not know nodejs24.x. */
const RUNTIME = 'nodejs22.x';

let code: ExampleCode;
let engine: Engine;
let folder = '';

beforeAll(async () => {
  const python = await findPython();
  if (python === undefined) throw new Error('These tests need Python 3.10 or later.');
  code = await exampleCode(python);
  folder = join(code.folder, 'terraform');
  await mkdir(folder);
  await cp('docs/examples/terraform', folder, { recursive: true });
  // The zips are made already, and only the AWS provider may be there.
  await writeFile(join(folder, 'archives.tf'), `locals {\n  zips = ${JSON.stringify(code.zips)}\n}\n`);
  await writeFile(join(folder, 'provider_override.tf'), PROVIDER);
  engine = await startEngine({ port: await freePort(), env: {} });
});

afterAll(async () => {
  await engine?.stop();
  if (code) await rm(code.folder, { recursive: true, force: true });
});

/** Settings without which the provider looks for what a local AWS does not have. */
const PROVIDER = `provider "aws" {
  skip_credentials_validation = true
  skip_requesting_account_id  = false
  skip_metadata_api_check     = true
}
`;

async function terraform(...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('terraform', [...args, '-no-color'], {
    cwd: folder,
    env: { ...withoutAws(process.env), ...localEnvironment(engine.endpoint), TF_IN_AUTOMATION: 'true' },
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
}

const installed = await promisify(execFile)('terraform', ['version']).then(
  () => true,
  () => false,
);

test('the Terraform configuration is valid, and what it applies delivers an event', async ({ skip }) => {
  skip(!installed, 'terraform is not installed');
  await terraform('init', '-input=false', ...(TF_PLUGIN_DIR ? [`-plugin-dir=${TF_PLUGIN_DIR}`] : []));
  expect(await terraform('validate')).toContain('The configuration is valid');
  await terraform('apply', '-auto-approve', '-input=false', `-var=runtime=${RUNTIME}`);
  const outputs = JSON.parse(await terraform('output', '-json'));
  await placedOrderIsReceipted(engine.endpoint, {
    table: outputs.table_name.value,
    placeOrder: outputs.place_order_function.value,
  });
});
