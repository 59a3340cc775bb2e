import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import type { AxeResults } from 'axe-core';
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { expect } from 'vitest';

/** The longest that a page may take to show what it has: it finds a page that hangs, also on a busy machine. */
const PAGE_MS = 60_000;

/** The longest that a page may take to show what a local AWS does: it retries a message for half a minute. */
export const ENGINE_MS = 180_000;

/** The viewport of a desktop. */
const DESKTOP = { width: 1280, height: 900 };

/** The longest step of a run of the demo: a killed worker's message returns after its visibility timeout, and then everything is repaired. */
export const DEMO_MS = 180_000;

/** A tab with the page in it. */
export interface OpenedPage {
  readonly page: Page;
  /** The errors on the console, the violations of the policy and the requests to other origins so far. */
  readonly problems: readonly string[];
  /** Goes to a screen, and waits for its heading. */
  go(route: string, heading: string | RegExp): Promise<void>;
  /** Closes the tab. @throws if there was a problem */
  close(): Promise<void>;
}

/**
 * Opens the page by its redirect file, as a browser on this machine does.
 *
 * @param options - e.g. the color scheme, or a phone's viewport
 * @param deadlineMs - for everything that is waited for @default a minute
 */
export async function openPage(
  browser: Browser,
  redirectFile: string,
  options: BrowserContextOptions = {},
  deadlineMs = PAGE_MS,
): Promise<OpenedPage> {
  const context = await browser.newContext({ viewport: DESKTOP, reducedMotion: 'reduce', ...options });
  context.setDefaultTimeout(deadlineMs);
  await context.addInitScript(await readFile(createRequire(import.meta.url).resolve('axe-core'), 'utf8'));
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });
  page.on('pageerror', (error) => problems.push(`${error.name}: ${error.message}`));
  page.on('request', (request) => {
    const { protocol, hostname } = new URL(request.url());
    const isOwn = protocol === 'file:' || protocol === 'data:' || hostname === '127.0.0.1';
    if (!isOwn) problems.push(`requests ${request.url()}`);
  });
  await page.goto(pathToFileURL(redirectFile).href);
  await page.getByRole('navigation', { name: 'Screens' }).waitFor();
  return {
    page,
    problems,
    go: async (route, heading) => {
      await page.evaluate(`location.hash = ${JSON.stringify(route)}`);
      await page.getByRole('heading', { level: 1, name: heading }).waitFor();
    },
    close: async () => {
      await context.close();
      expect(problems).toEqual([]);
    },
  };
}

/** Waits until a text is on the page or in a part of it. */
export async function shows(where: Page | Locator, text: string | RegExp): Promise<void> {
  await where.getByText(text).first().waitFor();
}

/** The violations that axe-core calls serious or critical, one line each. */
export async function axeViolations(page: Page): Promise<string[]> {
  const { violations } = await page.evaluate<AxeResults>('axe.run()');
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`));
}

/** How far the page can be scrolled sideways, pixels. */
export async function sidewaysPx(page: Page): Promise<number> {
  return page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
}
