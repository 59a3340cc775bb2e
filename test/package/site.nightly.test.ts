import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { launchBrowser } from '../browser/support/chromium.ts';
import { sidewaysPx } from '../browser/support/opened-page.ts';
import { step } from './step.ts';
import { ROOT } from './tarball.ts';

const BASE = '/cdk-mailroom/';
const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css',
  html: 'text/html',
  js: 'text/javascript',
  json: 'application/json',
  svg: 'image/svg+xml',
};

const browser = await launchBrowser();
let site = '';
let server: Server;

beforeAll(async () => {
  site = await mkdtemp(join(ROOT, '.local', 'site-'));
  // The build fails on a dead link.
  const variables = { DOCS_OUT: site, DOCS_BASE: BASE, DOCS_VERSION: '9.9.9', DOCS_VERSIONS_ROOT: BASE };
  const printed = await step(ROOT, 'npm', ['run', '--silent', 'docs:build'], variables);
  expect(printed).toContain(`The site is in ${site}. To read it: npm run docs:preview`);
  const versions = [
    { version: '9.9.9', base: BASE },
    { version: 'next', base: `${BASE}next/` },
  ];
  await writeFile(join(site, 'versions.json'), JSON.stringify({ versions }));
  server = await served(site);
});

afterAll(async () => {
  await browser?.close();
  server?.close();
  await rm(site, { recursive: true, force: true });
});

/** Opens a page of the site; the test fails if the page complains or asks another server. */
async function open(path: string, width = 1280): Promise<Page> {
  const page = await (browser as Browser).newPage({ viewport: { width, height: 900 }, colorScheme: 'light' });
  const problems: string[] = [];
  page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
  page.on('pageerror', ({ message }) => problems.push(message));
  page.on('request', (request) => !request.url().startsWith(address('')) && problems.push(request.url()));
  onTestFinished(async () => {
    await page.close();
    expect(problems).toEqual([]);
  });
  await page.goto(address(path), { waitUntil: 'networkidle' });
  return page;
}

function address(path: string): string {
  const { port } = server.address() as { port: number };
  return `http://127.0.0.1:${port}${BASE}${path}`;
}

test('the documentation site is built, with a page for each entry of the package', async () => {
  const api = await readFile(join(site, 'api', 'index.html'), 'utf8');
  for (const entry of ['cdk-mailroom', 'cdk-mailroom/runtime', 'cdk-mailroom/testing'])
    expect(api).toContain(`>${entry}</a>`);
});

describe.skipIf(browser === undefined)('the documentation site', () => {
  test('opens with the README below its name, and leads to getting started', async () => {
    const page = await open('');
    await page.getByRole('link', { name: 'Getting started' }).first().click();
    await page.getByRole('heading', { level: 1, name: 'Getting started' }).waitFor();
  });

  test.each([
    ['fencing token', /fencing token/i],
    ['InboxConsumerProps', 'InboxConsumerProps'],
  ])('finds %s by its search', async (words, found) => {
    const page = await open('');
    await page.getByRole('button', { name: 'Search' }).first().click();
    await page.locator('#localsearch-input').fill(words);
    await page.locator('.VPLocalSearchBox .result').filter({ hasText: found }).first().waitFor();
  });

  test('draws diagrams in the colors of both schemes', async () => {
    const page = await open('concepts');
    await page.locator('.diagram text', { hasText: 'PENDING' }).first().waitFor();
    const label =
      "[...document.querySelectorAll('.diagram text')].find((text) => text.textContent === 'PENDING')";
    const color = () => page.evaluate(`getComputedStyle(${label}).fill`);
    const light = await color();
    await page.evaluate("document.documentElement.classList.add('dark')");
    expect([light, await color()]).toEqual(['rgb(60, 60, 67)', 'rgb(223, 223, 214)']);
  });

  test('steps through a crash', async () => {
    const page = await open('crashes');
    await page.getByText(/^Step 1 of /).waitFor();
  });

  test('the site has a menu of its versions', async () => {
    const page = await open('cli');
    const menu = page.getByRole('combobox', { name: 'Version' });
    await menu.waitFor();
    expect(await menu.inputValue()).toBe(BASE);
  });

  test('answers an unknown address with its own page', async () => {
    const page = await (browser as Browser).newPage();
    await page.goto(address('no-such-page'));
    await page.getByText('PAGE NOT FOUND').waitFor();
    await page.close();
  });

  test.each(['', 'concepts', 'crashes', 'api/constructs', 'operating'])('fits a phone: /%s', async (path) => {
    const page = await open(path, 390);
    expect(await sidewaysPx(page)).toBe(0);
  });
});

/** Serves a folder as GitHub Pages does: `page` is `page.html`, and what is unknown is 404.html. */
async function served(folder: string): Promise<Server> {
  const read = (file: string) => readFile(join(folder, file)).catch(() => undefined);
  const http = createServer(async ({ url = '' }, response) => {
    const path = decodeURI(new URL(url, 'http://site').pathname).replace(BASE, '');
    const file = path === '' || path.endsWith('/') ? `${path}index.html` : path;
    const found = (await read(file)) ?? (await read(`${file}.html`));
    const type = TYPES[/\.(\w+)$/.exec(file)?.[1] ?? 'html'] ?? 'application/octet-stream';
    response.writeHead(found === undefined ? 404 : 200, { 'content-type': type });
    response.end(found ?? (await read('404.html')));
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  return http;
}
