import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { withoutAws } from '../../localstack/workspace.ts';
import { ROOT, readPages } from '../docs/pages.ts';
import { ADDRESSES, testApp } from './synth.ts';

let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mailroom-context-'));
});

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

test('the pages and the workflows pass a stage and two addresses to the CDK, and nothing else', () => {
  expect(documentedContext()).toEqual(['stage', ...Object.keys(ADDRESSES)].sort());
});

// The app itself, not its stacks alone: it chooses the rules of each stage.
describe.concurrent('the app synthesizes with every documented context value', () => {
  test.each(['local', 'dev', 'prod'])('in the stage %s', async (stage) => {
    const assembly = join(folder, stage);
    const context = JSON.stringify({ ...testApp().node.getAllContext(), ...ADDRESSES, stage });
    await promisify(execFile)(process.execPath, ['--import', 'tsx', 'bin/app.ts'], {
      cwd: ROOT,
      env: { ...withoutAws(process.env), CDK_CONTEXT_JSON: context, CDK_OUTDIR: assembly },
    });
    expect(await readdir(assembly)).toContain('Operations.template.json');
  });
});

/** The names of the context values in the commands of pages and workflows. */
function documentedContext(): string[] {
  const workflows = new URL('../../.github/workflows/', import.meta.url);
  const texts = [
    ...readPages().map(({ text }) => text),
    ...readdirSync(workflows).map((name) => readFileSync(new URL(name, workflows), 'utf8')),
  ];
  const named = texts.flatMap((text) => [...text.matchAll(/ (?:-c|--context) "?(?<name>\w+)=/g)]);
  return [...new Set(named.flatMap(({ groups }) => groups?.name ?? []))].sort();
}
