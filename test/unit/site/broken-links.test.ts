import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { brokenLinks } from '../../../tools/site/broken-links.ts';

let site = '';

beforeEach(async () => {
  site = await mkdtemp(join(tmpdir(), 'site-'));
  await mkdir(join(site, 'adr'));
  await writeFile(join(site, 'adr', 'index.html'), '<h2 id="what-s-new">New</h2>');
  await writeFile(join(site, 'style.css'), '');
});

afterEach(() => rm(site, { recursive: true, force: true }));

const home = (html: string) => writeFile(join(site, 'index.html'), html);

test('links to pages, headings, files and other sites are in order', async () => {
  await home(
    '<a id="top" href="/base/adr/"></a><a href="/base/adr/#what-s-new"></a><a class="x" href="#top"></a><a href="https://example.com/x"></a>' +
      '<link rel="stylesheet" href="/base/style.css">',
  );
  expect(await brokenLinks(site, '/base/')).toEqual([]);
});

test.each(['/base/adr/#gone', '/base/gone', '/base/gone.png', '#gone', '/other/adr/'])(
  '%s leads nowhere',
  async (link) => {
    await home(`<a href="${link}"></a>`);
    expect(await brokenLinks(site, '/base/')).toEqual([`index.html: ${link}`]);
  },
);

test('a page whose name ends in "index" has an address like any other', async () => {
  await writeFile(join(site, 'no-index.html'), '<h1 id="top">No index</h1><a href="#top"></a>');
  expect(await brokenLinks(site, '/base/')).toEqual([]);
});

test('a folder without a page is refused', async () => {
  await rm(join(site, 'adr'), { recursive: true });
  await expect(brokenLinks(site, '/')).rejects.toThrow('Run npm run docs:build');
});
