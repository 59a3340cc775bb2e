import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Engine, startEngine } from '../../../localstack/engine.ts';
import { freePort } from '../../../localstack/free-port.ts';
import { localEnvironment } from '../../../localstack/workspace.ts';
import { codeBlocks } from '../../docs/code-blocks.ts';
import { commandsOf } from '../../docs/shell.ts';
import { step } from '../../package/step.ts';
import { ROOT } from '../../package/tarball.ts';

/** The stage that a local engine can deploy: MiniStack has no archive and no composite alarm. */
const STAGE = 'local';

let engine: Engine;

beforeAll(async () => {
  engine = await startEngine({ port: await freePort(), env: {} });
});

afterAll(() => engine.stop());

/** Runs a script as GitHub Actions does. @returns what it printed */
async function run(script: string, variables: Readonly<Record<string, string>> = {}): Promise<string> {
  const printed = await step(ROOT, 'bash', ['-eo', 'pipefail', '-c', `{ ${script}\n} 2>&1`], {
    ...localEnvironment(engine.endpoint),
    ...variables,
  });
  expect(printed).not.toContain('Unknown option');
  return printed;
}

describe.sequential('on a local engine', () => {
  test('the commands of docs/deploying.md deploy the order system, and a single stack of it', async () => {
    const commands = (await pageCommands()).slice(0, -1);
    const names = commands.map((command) => command.split(' ').slice(1, 4).join(' '));
    expect(names).toEqual(['cdk bootstrap', 'cdk diff -c', 'cdk deploy --all', 'cdk deploy --exclusively']);
    for (const command of commands)
      await run(command.replace('cdk deploy', 'cdk deploy --require-approval never'));
    expect(await run(`npx cdk-mailroom status --stage ${STAGE}`)).toContain('nothing visible is broken');
  });

  test('the scripts of deploy.yml find nothing to change in it', async () => {
    const addresses = { PAGE_EMAIL: 'oncall@example.com', TICKET_EMAIL: 'team@example.com' };
    const variables = { ...addresses, STAGE, GITHUB_STEP_SUMMARY: '/dev/null' };
    try {
      const diff = await run(await workflowScript('cdk diff'), variables);
      expect(diff).toContain('Number of stacks with differences: 0');
    } finally {
      await rm(join(ROOT, 'diff.txt'), { force: true });
    }
    const deployed = await run(await workflowScript('cdk deploy'), variables);
    expect(deployed.match(/✅ .*\(no changes\)/g)).toHaveLength(7);
  });

  test('the last command of docs/deploying.md destroys it', async () => {
    const destroy = (await pageCommands()).at(-1) ?? '';
    expect(destroy).toContain('cdk destroy --all');
    expect((await run(`${destroy} --force`)).match(/✅ .*destroyed/g)).toHaveLength(7);
  });
});

/** The commands of the CDK in the blocks of the page, in its order. */
async function pageCommands(): Promise<string[]> {
  const page = await readFile(join(ROOT, 'docs', 'deploying.md'), 'utf8');
  const blocks = codeBlocks(page).filter(({ language }) => language === 'sh');
  return blocks
    .flatMap(({ code }) => commandsOf(code))
    .map((words) => words.join(' ').replace('stage=dev', `stage=${STAGE}`))
    .filter((command) => command.startsWith('npx cdk '));
}

/** The script of a step of deploy.yml, as its shell receives it. */
async function workflowScript(name: string): Promise<string> {
  const workflow = await readFile(join(ROOT, '.github', 'workflows', 'deploy.yml'), 'utf8');
  const step = new RegExp(
    `- name: ${name}\\n(?: {8,}.*\\n)*? {8}run: (?<style>\\||>-)\\n(?<lines>(?: {10}.*\\n)+)`,
  );
  const { style, lines = '' } = step.exec(workflow)?.groups ?? {};
  return style === '|' ? lines : lines.replaceAll('\n', ' ');
}
