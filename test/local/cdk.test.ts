import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { localEnvironment, projectRoot, withoutAws } from '../../localstack/workspace.ts';

const STACKS = ['Bank', 'Inventory', 'Mailroom', 'Notifications', 'Operations', 'Orders', 'Payments'];

let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mailroom-cdk-'));
});

afterAll(async () => {
  await rm(dir, { recursive: true, force: true });
});

/** What a command printed, and how it ended. */
interface Ended {
  readonly code: number | null;
  readonly output: string;
}

/** Runs one of the project's commands in an environment that knows of no AWS account but what `env` says. */
async function run(
  script: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<Ended> {
  const child = spawn(process.execPath, [join(projectRoot, 'node_modules', script), ...args], {
    cwd: projectRoot,
    env: {
      ...withoutAws(process.env),
      AWS_CONFIG_FILE: '/dev/null',
      AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
      AWS_EC2_METADATA_DISABLED: 'true',
      CDK_DISABLE_CLI_TELEMETRY: 'true',
      CDK_DISABLE_VERSION_CHECK: 'true',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return { code, output };
}

/** The templates of an assembly, by stack. */
async function templates(assembly: string): Promise<Record<string, string>> {
  const files = (await readdir(assembly)).filter((file) => file.endsWith('.template.json'));
  const read = files.map(async (file) => [
    file.replace('.template.json', ''),
    await readFile(join(assembly, file), 'utf8'),
  ]);
  return Object.fromEntries(await Promise.all(read));
}

describe.concurrent('cdk synth --all, without credentials', () => {
  it.each(['dev', 'prod'])('makes every stack of the stage %s, and none of it is local', async (stage) => {
    const assembly = join(dir, stage);
    const args = ['synth', '--all', '--quiet', '--context', `stage=${stage}`, '--output', assembly];
    const { code, output } = await run('aws-cdk/bin/cdk', args);

    expect(code, output).toBe(0);
    const stacks = await templates(assembly);
    expect(Object.keys(stacks).sort()).toEqual(STACKS);
    expect(stacks.Orders).toContain('"AuthType": "AWS_IAM"');
    for (const template of Object.values(stacks)) {
      expect(template).not.toMatch(
        /127\.0\.0\.1|localhost|000000000000|AWS_ENDPOINT_URL|ministack|localstack/i,
      );
      expect(template).not.toContain('"DeletionPolicy": "Delete"');
    }
  });
});

describe('cdklocal', () => {
  // The output folder is not the one of the first deployment, nor as deep: the bundles must not depend on it.
  it('finds nothing to change in what was deployed', async () => {
    const environment = localEnvironment(inject('endpoint'));
    const assembly = join(dir, 'again');
    const compared = await run(
      'aws-cdk-local/bin/cdklocal',
      ['diff', '--all', '--fail', '--output', assembly],
      environment,
    );
    expect(compared.code, compared.output).toBe(0);
    expect(compared.output).toContain('Number of stacks with differences: 0');

    const { code, output } = await run(
      'aws-cdk-local/bin/cdklocal',
      ['deploy', '--all', '--require-approval', 'never', '--app', assembly],
      environment,
    );
    expect(code, output).toBe(0);
    const unchanged = [...output.matchAll(/✅\s+(\S+) \(\S+\) \(no changes\)/gu)].map(([, stack]) => stack);
    expect(unchanged.sort(), output).toEqual(STACKS);
  });
});
