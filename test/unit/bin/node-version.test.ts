import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Script } from 'node:vm';
import { expect, test } from 'vitest';

interface Manifest {
  readonly engines: { readonly node: string };
  readonly bin: { readonly mailroom: string };
}

const { engines, bin } = createRequire(import.meta.url)('../../../cli/package.json') as Manifest;

/** The command's file, from the repository's folder. */
const COMMAND = `cli/${bin.mailroom}`;

/** Runs a file as on another version of Node.js. */
function runOn(version: string, file: string) {
  const stub = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });`;
  const args = ['--import', `data:text/javascript,${encodeURIComponent(stub)}`, file, '--version'];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  return { status, stdout, stderr };
}

test.each(['20.18.3', '18.20.8', '8.17.0'])(
  'on Node.js %s the command names the required version in one sentence',
  (version) => {
    expect(runOn(version, COMMAND)).toEqual({
      status: 2,
      stdout: '',
      stderr: `Mailroom needs Node.js 20.19 or later, and this is ${version}: install a newer one, or switch with your version manager.\n`,
    });
  },
);

test.each(['20.19.0', '21.0.0', '100.1.0'])('Node.js %s is new enough', (version) => {
  expect(runOn(version, 'cli/bin/node-version.js')).toEqual({ status: 0, stdout: '', stderr: '' });
});

test('the version is that of package.json', () => {
  expect(readFileSync('cli/bin/node-version.js', 'utf8')).toContain(
    `const needed = '${engines.node.replace('>=', '')}';`,
  );
});

test.each([COMMAND, 'cli/bin/node-version.js'])(
  '%s can be read as a script too, as old versions read it',
  (file) => {
    const text = readFileSync(file, 'utf8').replace(/^#!.*/, '');
    expect(() => new Script(text)).not.toThrow();
    // Later than Node.js 10.
    expect(text).not.toMatch(/\?\.|\?\?|\bawait\b|import\.meta|#\w|\d_\d/);
  },
);

test('npm installs the repository only on such a version', () => {
  expect(readFileSync('.npmrc', 'utf8')).toMatch(/^engine-strict=true$/m);
});
