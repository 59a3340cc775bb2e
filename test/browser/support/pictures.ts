import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { projectRoot } from '../../../localstack/workspace.ts';
import { ENGINE_MS } from './opened-page.ts';

const IMAGES = join(projectRoot, 'docs', 'images');

/** The most bytes of a picture: a page of the documentation loads several, and the README one of twice the resolution. */
const BYTES_MAX = 400_000;

/** What differs from run to run, and its name in the text. */
const VARIABLE: readonly (readonly [RegExp, string])[] = [
  [/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<id>'],
  [/\b(mailroom-local-[\w-]*?)[0-9A-F]{8}\S*/g, '$1<name>'],
  [/…[0-9a-f]{8}\b/gi, '…<name>'],
  [/127\.0\.0\.1:\d+/g, '127.0.0.1:<port>'],
  [/\d{4}-\d\d-\d\d[T ][\d:.]+Z?( UTC)?/g, '<time>'],
  [/\d[\d.,]*\/(?:s|min)\b/g, '<rate>'],
  [/(?:< ?)?\d[\d.,]* ?(?:ms|s|min|h|d)(?: \d+ ?(?:s|min|h|d))?\b/g, '<age>'],
  [/\d[\d.,]*/g, '#'],
  [/^(?:falling|level|rising)$/, ''],
];

/** The parts whose lines differ from run to run: which events are the newest ones, and how many. */
const VARYING_PARTS = '.stories, .stories + .more';

/**
 * Checks that the committed picture of a screen is current: its text is committed beside it. With `PICTURES=renew`, takes both again.
 *
 * @param name - of the files in docs/images
 * @param varying - selectors of more parts whose lines differ from run to run
 */
export async function isPictured(page: Page, name: string, varying: readonly string[] = []): Promise<void> {
  const textFile = join(IMAGES, `${name}.txt`);
  const content = () => contentOf(page, [VARYING_PARTS, ...varying].join());
  if (process.env.PICTURES === 'renew') {
    await mkdir(IMAGES, { recursive: true });
    await page.evaluate('scrollTo(0, 0)');
    const picture = await page.screenshot({ path: join(IMAGES, `${name}.png`), animations: 'disabled' });
    expect(picture.byteLength, `the size of ${name}.png`).toBeLessThan(BYTES_MAX);
    await writeFile(textFile, await content());
  }
  const committed = await readFile(textFile, 'utf8').catch(() => '');
  const message = `docs/images/${name}.png shows another page. Renew it: PICTURES=renew npx vitest run --project browser`;
  // The page is live: on a busy machine a message is still retried, or a consumer is behind for a while.
  await expect.poll(content, { timeout: ENGINE_MS, message }).toBe(committed);
}

/** The words of the page, sorted, each line once, without what differs from run to run. */
async function contentOf(page: Page, varyingParts: string): Promise<string> {
  // In one step, because the page is live.
  const [all = '', ...varying] = await page.evaluate<string[]>(
    `[document.body, ...document.querySelectorAll(${JSON.stringify(varyingParts)})].map(({ innerText }) => innerText)`,
  );
  const text = varying.reduce((left, part) => left.replace(part, ''), all);
  const lines = text
    .split('\n')
    .map((line) => VARIABLE.reduce((shown, [pattern, name]) => shown.replace(pattern, name), line.trim()));
  return `${[...new Set(lines)]
    .filter((line) => line !== '')
    .sort()
    .join('\n')}\n`;
}
