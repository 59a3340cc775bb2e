import { mkdtemp, readdir, readFile, rm, stat, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readPageFiles } from '../../../../../cli/page/server/page-files.ts';
import { DOCUMENTATION_URL } from '../../../../../lambdas/runtime/base/documentation.ts';
import { buildPage } from '../../../../../tools/pack/page.ts';

/** The most bytes of the page, compressed. */
const GZIP_MAX_BYTES = 100_000;

let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mailroom-page-'));
  await buildPage(folder);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

const read = (name: string) => readFile(join(folder, name), 'utf8');

test('the built page has at most 100 KB compressed', async () => {
  const names = await readdir(folder);
  expect(names.sort()).toEqual(['THIRD-PARTY-LICENSES.txt', 'index.html', 'page.css', 'page.js']);
  const sizes = await Promise.all(
    ['index.html', 'page.css', 'page.js'].map(async (name) => gzipSync(await read(name)).length),
  );
  expect(sizes.every((bytes) => bytes > 100)).toBe(true);
  expect(sizes.reduce((sum, bytes) => sum + bytes)).toBeLessThanOrEqual(GZIP_MAX_BYTES);
});

test('the page loads only its own files, and has no inline script or style, which its policy forbids', async () => {
  const html = await read('index.html');
  const loaded = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, target]) => target);
  expect(loaded.sort()).toEqual(['/page.css', '/page.js', 'data:,']);
  expect(html).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/i);
  expect(await read('page.css')).not.toMatch(/@import|url\((?!["']?data:image\/)/);
  // The namespaces of SVG and MathML are names, not addresses; the documentation is linked, and opened on a click only.
  const addresses = (await read('page.js')).match(/https?:\/\/[\w.-]+/g) ?? [];
  const { origin } = new URL(DOCUMENTATION_URL);
  expect(addresses.filter((address) => address !== 'http://www.w3.org' && address !== origin)).toEqual([]);
});

test('the licenses of the bundled packages are beside the page', async () => {
  const text = await read('THIRD-PARTY-LICENSES.txt');
  expect(text).toMatch(/^== preact [\d.]+: MIT$/m);
  expect(text).toMatch(/^== eventsource-parser [\d.]+: MIT$/m);
  expect(text.match(/Permission is hereby granted/g)?.length).toBe(text.match(/^== /gm)?.length);
});

test('the server has the page in memory, and nothing else', async () => {
  const files = await readPageFiles();
  expect([...files.keys()]).toEqual(['/', '/page.js', '/page.css']);
  expect(files.get('/')?.body.toString('utf8')).toBe(await read('index.html'));
  expect(files.get('/page.js')?.body.toString('utf8')).toBe(await read('page.js'));
});

test('among the sources the page is built again once they have changed', async () => {
  await readPageFiles();
  const script = new URL('../../../../../cli/dist/ui/page.js', import.meta.url);
  const longAgo = new Date(0);
  await utimes(script, longAgo, longAgo);
  await readPageFiles();
  expect((await stat(script)).mtimeMs).toBeGreaterThan(longAgo.getTime());
});
