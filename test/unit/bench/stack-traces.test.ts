import { execFile } from 'node:child_process';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { withFiles } from '../../../bench/bundles/import-time.ts';
import { BUNDLE_BANNER } from '../../../lib/functions/bundle-banner.ts';
import { bundleFunction, type FunctionBundle } from '../../../tools/pack/function-bundle.ts';

const SOURCE = 'test/unit/bench/failing.handler.ts';

let bundle: FunctionBundle;

beforeAll(async () => {
  bundle = await bundleFunction({ name: 'failing', entry: SOURCE });
});

/** What the handler of a bundle returns in a fresh process. @param before - code between the import and the call */
async function stackOf(folder: string, nodeOptions: readonly string[] = [], before = ''): Promise<string> {
  const file = pathToFileURL(join(folder, 'failing.mjs')).href;
  const call = `const { handler } = await import(${JSON.stringify(file)}); ${before}; console.log(await handler('x'));`;
  const args = [...nodeOptions, '--input-type=module', '--eval', call];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env: {} });
  return stdout;
}

/** The calls of a stack in the fixture: the file, and line and column. */
function callsIn(stack: string) {
  return [...stack.matchAll(/^ {4}at .*?([^ (]*failing[^:]*):(\d+:\d+)\)?$/gm)].map(([, file = '', at]) => ({
    file,
    at,
  }));
}

test('a stack trace names the functions, files and lines of the source', async () => {
  const stack = await withFiles([bundle], (folder) => stackOf(folder));
  expect(stack).toMatch(
    /^RowMissing: There is no row x\n {4}at rowOf \(test\/unit\/bench\/failing\.handler\.ts:18:\d+\)\n/,
  );
  expect(stack).toContain('TypeError: inner\n');
  expect(new Set(callsIn(stack).map(({ file }) => file))).toEqual(new Set([SOURCE]));
});

test('a stack trace has the lines and columns that --enable-source-maps shows', async () => {
  const [own, ofNode] = await withFiles([bundle], async (folder) =>
    Promise.all([stackOf(folder), stackOf(folder, ['--enable-source-maps'])]),
  );
  const calls = callsIn(own).map(({ at }) => at);
  expect(calls.length).toBeGreaterThanOrEqual(6);
  expect(calls).toEqual(callsIn(ofNode).map(({ at }) => at));
  // Node.js shows absolute paths, so it was not the banner that mapped these.
  expect(ofNode).not.toContain(` (${SOURCE}`);
});

test('the map is read with the first stack, and not when the bundle is imported', async () => {
  const stack = await withFiles([bundle], async (folder) => {
    const [map, away] = [join(folder, 'failing.mjs.map'), join(folder, 'away')];
    await rename(map, away);
    const back = `await (await import('node:fs/promises')).rename(${JSON.stringify(away)}, ${JSON.stringify(map)})`;
    return stackOf(folder, [], back);
  });
  expect(stack).toContain(`at rowOf (${SOURCE}:18:`);
});

test.each([
  ['no map', new Uint8Array()],
  ['a map that is damaged', Buffer.from('{"version":3')],
])('a bundle with %s has the stack traces of the bundle', async (_, sourceMap) => {
  const stack = await withFiles([{ ...bundle, sourceMap }], (folder) => stackOf(folder));
  expect(stack).toMatch(/^RowMissing: There is no row x\n {4}at \S+ \(file:.*failing\.mjs:\d+:\d+\)\n/);
});

test('the banner reaches esbuild through a shell unchanged', () => {
  expect(BUNDLE_BANNER).not.toMatch(/["$%`\\\n]/);
});
