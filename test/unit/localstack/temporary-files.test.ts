import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { projectRoot } from '../../../localstack/workspace.ts';

const MODULE = join(projectRoot, 'test/support/temporary-files.ts');

/** Above the largest id of a process on Linux. */
const NO_PROCESS = 5_000_000;

const folder = mkdtempSync(join(tmpdir(), 'runs-'));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a program that imports the module. @returns the folder that it prints */
function runIn(dir: string): string {
  const code = `import ${JSON.stringify(pathToFileURL(MODULE).href)}; import { mkdtempSync } from 'node:fs'; import { tmpdir } from 'node:os';
    mkdtempSync(tmpdir() + '/left-'); console.log(tmpdir());`;
  const args = ['--import', 'tsx', '--input-type=module', '--eval', code];
  const env = { ...process.env, TMPDIR: dir, TSX_DISABLE_CACHE: '1' };
  return execFileSync(process.execPath, args, { cwd: projectRoot, env, encoding: 'utf8' }).trim();
}

test('a run has a folder of its own for temporary files, and removes it with that of a killed run of another day', () => {
  const left = (name: string, ageS: number) => {
    mkdirSync(join(folder, name));
    const at = Date.now() / 1_000 - ageS;
    utimesSync(join(folder, name), at, at);
  };
  left(`mailroom-tests-${NO_PROCESS}-old`, 90_000);
  left(`mailroom-tests-${NO_PROCESS}-young`, 60);
  left(`mailroom-tests-${process.pid}-runs`, 90_000);
  left('of-others', 90_000);
  expect(basename(runIn(folder))).toMatch(/^mailroom-tests-\d+-/);
  const kept = ['of-others', `mailroom-tests-${NO_PROCESS}-young`, `mailroom-tests-${process.pid}-runs`];
  expect(readdirSync(folder).sort()).toEqual(kept.sort());
});

test('a run that a test starts uses the folder of its own run, which removes it', () => {
  const outer = join(folder, `mailroom-tests-${process.pid}-runs`);
  expect(runIn(outer)).toBe(outer);
  expect(readdirSync(outer)).toHaveLength(1);
});

test('every configuration of Vitest imports it', () => {
  const files = readdirSync(projectRoot).filter((name) => /^vitest\..*config\.ts$/.test(name));
  expect(files).toContain('vitest.config.ts');
  for (const file of files)
    expect(readFileSync(join(projectRoot, file), 'utf8'), file).toMatch(
      /^import '\.\/test\/support\/temporary-files\.ts';/,
    );
});
