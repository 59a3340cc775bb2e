import { readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { codeBlocks } from '../docs/code-blocks.ts';
import { commandsOf } from '../docs/shell.ts';
import { invoke, type StartedEngine } from './local-engine.ts';
import { step } from './step.ts';
import { ROOT } from './tarball.ts';

/** The shell block under a heading of docs/getting-started.md, one for each. */
function shellBlocks(heading: string): string[] {
  const page = readFileSync(join(ROOT, 'docs', 'getting-started.md'), 'utf8');
  const found = codeBlocks(page).filter((block) => block.language === 'sh' && block.heading === heading);
  if (found.length === 0) throw new Error(`docs/getting-started.md has no shell block under "${heading}"`);
  return found.map(({ code }) => code);
}

/** The commands under a heading of docs/getting-started.md that begin like this, each as its words. */
export function pageCommands(heading: string, beginning: string): string[][] {
  return shellBlocks(heading)
    .flatMap(commandsOf)
    .filter((words) => words.join(' ').startsWith(beginning));
}

/** The payload of the only `aws lambda invoke` under a heading. */
function payload(heading: string): object {
  const found = /--payload '(?<json>[^']+)'/.exec(shellBlocks(heading).join('\n'))?.groups?.json;
  return JSON.parse(found ?? '') as object;
}

const TRY = 'Deploy and try it';
const FAIL = 'See a failure, and fix it';

/** Does what the page says after `npx cdk deploy`, up to the repaired failure. The AWS CLI's calls are made with the SDK. */
export async function followPage(app: string, engine: StartedEngine): Promise<void> {
  const run = async ([command = '', ...args]: readonly string[]) =>
    await step(app, command, args, engine.environment);
  const why = async (heading: string, expected: RegExp) => {
    const [command = []] = pageCommands(heading, 'npx cdk-mailroom why');
    const look = async () => {
      // Exits with 1 while the order needs its operator: the error then has what was printed.
      const printed = await run(command).catch((error: Error) => error.message);
      expect(printed.replaceAll(/\s+/g, ' ')).toMatch(expected);
    };
    await vi.waitFor(look, { timeout: 300_000, interval: 1_000 });
  };
  await invoke(engine, 'ShopStack-Orders', payload(TRY));
  await why(TRY, /processed OrderPlaced/);

  await invoke(engine, 'ShopStack-Orders', payload(FAIL));
  await why(
    FAIL,
    /rejected payments .*attempt 3 of 3, .*Charges above 10,000\.00 are switched off.*dlq redrive consumer:payments/,
  );
  const bank = join(app, 'src', 'bank.ts');
  await writeFile(bank, (await readFile(bank, 'utf8')).replace('1_000_000', '10_000_000'));
  await run([...(pageCommands(FAIL, 'npx cdk deploy')[0] ?? []), '--require-approval', 'never']);
  const [plan = [], apply = []] = pageCommands(FAIL, 'npx cdk-mailroom dlq redrive');
  expect(await run(plan)).toContain('1 would run again');
  expect(await run(apply)).toContain('1 of 1 processed');
  await why(FAIL, /processed OrderPlaced/);
}
