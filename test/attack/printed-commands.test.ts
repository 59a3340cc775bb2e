import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { runMailroom } from '../../cli/program.ts';
import { capturedIo } from '../support/captured-io.ts';

const ROOT = new URL('../../', import.meta.url);

/** Everything that a user can paste from: pages, sources of texts and help, reviewed outputs and templates. */
const PLACES = [
  '*.md',
  'llms.txt',
  '.github',
  'bin',
  'cli',
  'docs',
  'lambdas',
  'lib',
  'localstack',
  'tools',
  'test/unit/cli/captures',
  'test/infra/__snapshots__',
];

/**
 * The commands by the short name in a text: `npx` would fetch the unrelated package of that name from the registry wherever this one
 * is not installed, and run it with the credentials of the shell.
 */
const byShortName = (text: string) =>
  text.match(/\bnpx(?: --?\S+)* mailroom\b.*|^\s*\$ mailroom [a-z].*/gm) ?? [];

describe('a command to paste', () => {
  test('names the package, so that npx cannot run another', () => {
    const files = execFileSync('git', ['ls-files', '--', ...PLACES], { cwd: ROOT, encoding: 'utf8' })
      .trim()
      .split('\n')
      // The first line of a reviewed output says how it was made.
      .map((path) => ({
        path,
        text: readFileSync(new URL(path, ROOT), 'utf8').replace(/^\$ mailroom .*\n/, ''),
      }));
    expect(files.length).toBeGreaterThan(500);
    expect(
      files.flatMap(({ path, text }) => byShortName(text).map((line) => `${path}: ${line.trim()}`)),
    ).toEqual([]);
    expect(files.filter(({ text }) => text.includes('npx cdk-mailroom ')).length).toBeGreaterThan(60);
  });

  test('the command is found by its short name', () => {
    expect(byShortName('Run `npx mailroom status`.\n  $ mailroom why 42\nnpx --yes mailroom\n')).toHaveLength(
      3,
    );
    expect(byShortName('`mailroom status` and `npx cdk-mailroom why 42`')).toEqual([]);
  });

  test('the help shows a command that is a bin of the package', async () => {
    const { io, written } = capturedIo();
    expect(await runMailroom(['--help'], io)).toBe(0);
    expect(written.out).toContain('Usage: npx cdk-mailroom [options] [command]');
    const { name, bin } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8'));
    expect(Object.keys(bin)).toEqual([name, 'mailroom']);
  });
});
