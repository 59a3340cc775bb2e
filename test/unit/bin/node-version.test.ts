import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Script } from 'node:vm';
import { describe, expect, test } from 'vitest';

interface Manifest {
  readonly engines: { readonly node: string };
  readonly scripts: Readonly<Record<string, string>>;
  readonly bin: { readonly mailroom: string };
}

const { engines, scripts, bin } = createRequire(import.meta.url)('../../../package.json') as Manifest;

/** Runs a file as on another version of Node.js. */
function runOn(version: string, file: string) {
  const stub = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });`;
  const args = ['--import', `data:text/javascript,${encodeURIComponent(stub)}`, file, '--version'];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  return { status, stdout, stderr };
}

describe.each([
  ['the command', bin.mailroom],
  ['a command of package.json', 'bin/node-version.js'],
])('%s on a Node.js that is too old', (_what, file) => {
  test.each(['20.18.3', '18.20.8', '8.17.0'])('names the required version in one sentence: %s', (version) => {
    expect(runOn(version, file)).toEqual({
      status: 2,
      stdout: '',
      stderr: `Mailroom needs Node.js 20.19 or later, and this is ${version}: install a newer one, or switch with your version manager.\n`,
    });
  });
});

test.each(['20.19.0', '21.0.0', '100.1.0'])('Node.js %s is new enough', (version) => {
  expect(runOn(version, 'bin/node-version.js')).toEqual({ status: 0, stdout: '', stderr: '' });
});

test('the version is that of package.json', () => {
  expect(readFileSync('bin/node-version.js', 'utf8')).toContain(
    `const needed = '${engines.node.replace('>=', '')}';`,
  );
});

test.each([bin.mailroom, 'bin/node-version.js'])(
  '%s can be read as a script too, as old versions read it',
  (file) => {
    const text = readFileSync(file, 'utf8').replace(/^#!.*/, '');
    expect(() => new Script(text)).not.toThrow();
    // Later than Node.js 10.
    expect(text).not.toMatch(/\?\.|\?\?|\bawait\b|import\.meta|#\w|\d_\d/);
  },
);

test('every command of package.json that people run checks the version first', () => {
  const unchecked = Object.entries(scripts).filter(
    ([, line]) =>
      /\b(?:tsx|vitest|concurrently)\b/.test(line) && !/^node bin\/node-version\.js && /.test(line),
  );
  expect(unchecked.map(([name]) => name)).toEqual([]);
});
