import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { Stack } from 'aws-cdk-lib';
import { type BundlingOptions, OutputFormat, SourceMapMode } from 'aws-cdk-lib/aws-lambda-nodejs';
import { afterAll, describe, expect, test } from 'vitest';
import { ServiceFunction } from '../../lib/functions/service-function.ts';
import { localFile } from '../../localstack/workspace.ts';
import { testApp } from './synth.ts';

const folder = mkdtempSync(localFile('bundle-check-'));
writeFileSync(join(folder, 'package.json'), '{ "type": "commonjs" }');
afterAll(() => rmSync(folder, { recursive: true }));

/** Bundles files, of which the first is the entry. @returns the entry as given to the function */
function bundle(files: Readonly<Record<string, string>>, bundling?: BundlingOptions): string {
  const dir = relative(process.cwd(), mkdtempSync(join(folder, 'app-')));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, name)), { recursive: true });
    writeFileSync(join(dir, name), text);
  }
  const entry = join(dir, Object.keys(files)[0] ?? '');
  const app = testApp({ 'aws:cdk:bundling-stacks': ['Stack'] });
  new ServiceFunction(new Stack(app, 'Stack'), 'Bank', {
    entry,
    service: 'bank',
    ...(bundling && { bundling }),
  });
  return entry;
}

const PACKAGE = {
  'node_modules/dep/package.json': '{ "type": "module", "main": "i.js" }',
  'node_modules/dep/i.js':
    'export const run = () => {};\nexport const old = () => { exports.old = 1; };\nglobalThis.old = old;',
};
const JOIN = "import { join } from 'node:path';\n";
const LATER = `export const handler = () => ${'import.meta.url'};\n`;

describe('a bundle without a handler', () => {
  test.each<[string, Readonly<Record<string, string>>, string]>([
    [
      'import beside exports.handler',
      { 'a.ts': `${JOIN}exports.handler = async () => join('a');` },
      'default',
    ],
    [
      'CommonJS',
      { 'a.ts': "const { join } = require('node:path');\nexports.handler = async () => join('a');" },
      'default',
    ],
    ['a default export', { 'a.ts': 'export default async () => {};' }, 'default'],
    ['a misspelled name', { 'a.ts': 'export const handlr = async () => {};' }, 'handlr'],
    ['no export', { 'a.mts': 'console.log(import.meta.url);' }, 'nothing'],
    [
      'a re-export of everything from CommonJS',
      { 'a.ts': "export * from './b.cjs';", 'b.cjs': 'exports.handler = async () => {};' },
      'nothing',
    ],
  ])('is refused: %s', (_name, files, exported) => {
    expect(() => bundle(files)).toThrow(
      new RegExp(
        `^The function Stack/Bank has invalid settings: entry is "[^"]*a\\.m?ts", which does not export handler, which Lambda calls \\(exported: ${exported}\\)\\. Export it`,
      ),
    );
  });
});

describe('an ES module that assigns to exports', () => {
  test.each<[string, Readonly<Record<string, string>>, string, BundlingOptions?]>([
    ['exports.handler in .mts', { 'a.mts': `${JOIN}exports.handler = async () => join('a');` }, 'a.mts:2'],
    ['beside import.meta', { 'a.ts': 'exports.handler = async () => import.meta.url;' }, 'a.ts:1'],
    ['beside a handler', { 'a.ts': `${LATER}\n\nexports.more = 1;` }, 'a.ts:4'],
    [
      'exports.handler in a package of ES modules',
      { 'a.ts': 'exports.handler = async () => {};', 'package.json': '{ "type": "module" }' },
      'a.ts:1',
    ],
    ['module.exports', { 'a.ts': `${LATER}module.exports = { handler };` }, 'a.ts:2'],
    [
      'in another file',
      { 'a.ts': `export { b as handler } from './b.ts';`, 'b.ts': "exports['b'] = 1;\nexport const b = 1;" },
      'b.ts:1',
    ],
    [
      'behind text that is not ASCII, in a bundle in UTF-8',
      { 'a.ts': `${LATER}console.log('${'ü'.repeat(99)}');\nexports.more = 1;` },
      'a.ts:3',
      { esbuildArgs: { '--charset': 'utf8' } },
    ],
    [
      'with a source map to which the bundle does not refer',
      { 'a.ts': `${LATER}exports.more = 1;` },
      'a.ts:2',
      { sourceMapMode: SourceMapMode.EXTERNAL },
    ],
  ])('is refused: %s', (_name, files, at, bundling) => {
    expect(() => bundle(files, bundling)).toThrow(
      `${at} assigns to exports or module.exports in an ES module, which has neither`,
    );
  });
});

describe('a bundle that starts', () => {
  test.each<[string, Readonly<Record<string, string>>, BundlingOptions?]>([
    ['a function', { 'a.ts': 'export async function handler() {}' }],
    [
      'a re-export',
      { 'a.ts': "export { run as handler } from './b.ts';", 'b.ts': 'export const run = () => {};' },
    ],
    ['a re-export of everything', { 'a.ts': "export * from './b.ts';", 'b.ts': LATER }],
    [
      'a re-export from CommonJS',
      { 'a.ts': "export { handler } from './b.cjs';", 'b.cjs': 'exports.handler = () => {};' },
    ],
    [
      'a re-export from a package that is not bundled',
      { 'a.ts': "export * from 'layer';" },
      { externalModules: ['layer'] },
    ],
    [
      'a guarded assignment',
      { 'a.ts': `${LATER}if (typeof module !== 'undefined') module.exports = { handler };` },
    ],
    [
      'a package with an assignment that never runs',
      {
        'a.ts': `import { run } from 'dep';\nexport const handler = run;`,
        ...PACKAGE,
      },
    ],
    [
      'such a package beside a guarded assignment',
      {
        'a.ts': `import { run } from 'dep';\nexport const handler = run;\nif (typeof module !== 'undefined') module.exports = { handler };`,
        ...PACKAGE,
      },
    ],
    [
      'a guarded assignment beside a member of undefined that is never read',
      {
        'a.ts': `${LATER}if (typeof module !== 'undefined') module.exports = { handler };\nexport const f = () => (undefined as any).x;`,
      },
    ],
    ['without a source map', { 'a.ts': LATER }, { sourceMap: false }],
    ['CommonJS', { 'a.ts': 'exports.handler = async () => {};' }, { format: OutputFormat.CJS }],
  ])('is accepted: %s', (_name, files, bundling) => {
    expect(bundle(files, bundling)).toMatch(/a\.ts$/);
  });
});
