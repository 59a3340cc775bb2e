import type { Browser, Page } from 'playwright-core';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import type { FlowEvent } from '../../cli/page/server/protocol.ts';
import { launchBrowser } from './support/chromium.ts';
import { openedInMemory, statusOf } from './support/memory-page.ts';
import { openPage, shows } from './support/opened-page.ts';

const deadLetters = { state: 'broken', code: 'dead-letters', part: 'dead', count: 1 } as const;

const browser = await launchBrowser();
const opened = (options?: Parameters<typeof openedInMemory>[1]) =>
  openedInMemory(browser as Browser, options);

describe.skipIf(browser === undefined)('the frame of the page', () => {
  afterAll(() => browser?.close());

  test('a reload loses the key, and the page says how to get another', async () => {
    const { page } = await opened();
    await page.reload();
    await shows(page, 'This tab has no key.');
    await shows(page, 'Enter');
  });

  test('a server that stops is named on every screen, and its data is called stale', async () => {
    const { page, ui } = await opened();
    await ui.stop();
    await shows(page.getByRole('alert'), "The web console's server is not responding");
    await page.evaluate("location.hash = '#/doctor'");
    await page.getByRole('heading', { level: 1, name: 'Doctor' }).waitFor();
    await shows(page.getByRole('alert').first(), "The web console's server is not responding");
    await shows(page.getByRole('region', { name: 'Environment' }), 'Disconnected');
  });

  test('a hidden tab closes its stream, and a visible one opens it again', async () => {
    const { page, listeners } = await opened();
    await expect.poll(() => listeners.size).toBe(1);
    await setHidden(page, true);
    await expect.poll(() => listeners.size).toBe(0);
    await shows(page, 'Paused');
    await setHidden(page, false);
    await expect.poll(() => listeners.size).toBe(1);
  });

  test('the keys: / finds an event, ? lists the keys, Escape closes the list, a digit opens a screen', async () => {
    const { page } = await opened();
    await page.keyboard.press('?');
    const list = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
    await list.waitFor();
    await page.keyboard.press('Escape');
    await list.waitFor({ state: 'hidden' });
    await page.keyboard.press('/');
    await page.keyboard.type('no such/event?');
    await page.keyboard.press('Enter');
    await shows(page.getByRole('alert'), 'no such/event?');
    await page.getByRole('heading', { level: 1 }).click();
    await page.keyboard.press('5');
    await page.getByRole('heading', { level: 1, name: 'Doctor' }).waitFor();
    expect(await page.evaluate('document.activeElement.id')).toBe('main');
  });

  test('a single key is text in a visible field that takes text, and a key of the page everywhere else', async () => {
    const { page } = await opened();
    expect(await takenIn(page, [...TEXT_FIELDS, ...NO_TEXT_FIELDS])).toEqual(NO_TEXT_FIELDS);
  });

  test('the single keys can be turned off, because spoken words arrive as keys, too', async () => {
    const { page } = await opened();
    await page.keyboard.press('?');
    const list = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
    await list.getByLabel('Use single keys in this tab').uncheck();
    await page.keyboard.press('Escape');
    await list.waitFor({ state: 'hidden' });
    for (const key of ['5', '/', '?']) await page.keyboard.press(key);
    expect(await page.evaluate('location.hash')).toBe('#/');
    expect(await list.isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Keyboard shortcuts' }).click();
    await list.getByLabel('Use single keys in this tab').check();
    await page.keyboard.press('Escape');
    await page.keyboard.press('5');
    await page.getByRole('heading', { level: 1, name: 'Doctor' }).waitFor();
  });

  test('a button keeps the focus while its work is under way, and the end of the work is announced', async () => {
    const { page } = await opened();
    await page.evaluate("location.hash = '#/operations'");
    await page.getByRole('heading', { level: 1, name: 'Operations log' }).waitFor();
    const state = page.locator('.reading-state');
    await shows(state, 'Done');
    await page.evaluate(`
      globalThis.said = [];
      const state = document.querySelector('.reading-state');
      new MutationObserver(() => said.push(state.textContent)).observe(state, { childList: true });
    `);
    await page.getByRole('button', { name: 'Read again' }).focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.evaluate('said')).toEqual(['Reading', 'Done']);
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Read again');
  });

  test('a copied command is announced outside of its button', async () => {
    const { page, send } = await opened();
    const finding = {
      state: 'broken',
      ...{ code: 'no-bus', part: 'bus', count: null },
      what: 'the bus is gone',
      commands: ['npx cdk-mailroom doctor'],
    } as const;
    await send({ status: statusOf('broken', [finding]) });
    await page.getByRole('button', { name: '1 command' }).click();
    await page.getByRole('button', { name: 'Copy the command npx cdk-mailroom doctor' }).click();
    await shows(page.locator('.command > [role="status"]'), /^(Copied|Not copied: select the text)$/);
  });

  test('the frame marks only the open screen if colors are forced', async () => {
    const { page } = await opened();
    await page.emulateMedia({ forcedColors: 'active' });
    const borders = await page.evaluate<string[]>(
      `[...document.querySelectorAll('.tabs a')].map((tab) => getComputedStyle(tab).borderBottomColor)`,
    );
    const [current, ...others] = borders;
    expect(new Set(others).size).toBe(1);
    expect(others).not.toContain(current);
  });

  test('the verdict is the title of the tab and a live region', async () => {
    const { page, send } = await opened();
    const finding = {
      state: 'broken',
      code: 'no-bus',
      part: 'bus',
      count: null,
      what: 'the bus is gone',
      commands: [],
    } as const;
    await send({ status: statusOf('broken', [finding]) });
    await expect.poll(() => page.title()).toMatch(/^1 problem · Flow · /);
    await shows(page.getByRole('status'), '1 problem');
    await send({ status: statusOf('ok', []) });
    await expect.poll(() => page.title()).toMatch(/^Nothing visible is broken · /);
  });

  test('a command with many ids takes a few lines, and is copied whole', async () => {
    const { page, send } = await opened();
    const line = `npx cdk-mailroom dlq redrive dead ${Array.from({ length: 1_000 }, () => MOVED.eventId).join(' ')} --apply`;
    await send({ status: statusOf('broken', [{ ...deadLetters, what: 'dead letters', commands: [line] }]) });
    await page.getByRole('button', { name: '1 command' }).click();
    const command = page.locator('.findings .command');
    await command.waitFor();
    expect((await command.boundingBox())?.height).toBeLessThan(200);
    expect(await command.locator('code').textContent()).toBe(line);
  });

  test('a finding is one line, and its button shows all of its text and its commands', async () => {
    const { page, send } = await opened();
    const rule = 'shop-prod-stock-StockRule79E5F8A5-B45F79174BC23';
    const what = `stock receives no events: its rule ${rule} is disabled. Restore it`;
    const commands = [`aws events enable-rule --name ${rule}`, 'npx cdk-mailroom audit --since 24h'];
    await send({ status: statusOf('broken', [{ ...deadLetters, what, commands }]) });
    const finding = page.getByRole('listitem').filter({ hasText: 'stock receives no events' });
    await shows(finding, 'its rule …9174BC23 is disabled');
    expect((await finding.boundingBox())?.height).toBeLessThan(56);
    expect(await finding.getByText(rule).isVisible()).toBe(false);
    await finding.getByRole('button', { name: '2 commands' }).click();
    await shows(finding, what);
    for (const command of commands) await shows(finding, command);
    // A line ends before an option or after its value, never inside.
    const pieces = await finding.locator('code').first().locator('span').allTextContents();
    expect(pieces.filter((piece) => piece !== ' ')).toEqual([
      'aws',
      'events',
      'enable-rule',
      `--name ${rule}`,
    ]);
  });

  test('an id is shown by its end, and selecting it copies all of it', async () => {
    const { page, send } = await opened();
    await send({ events: [MOVED] });
    const newest = page.getByRole('region', { name: 'Newest events' });
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    const shown = newest.locator(`.story > .id > .short-id[title="${MOVED.eventId}"]`);
    expect((await shown.boundingBox())?.width).toBeLessThan(100);
    await shown.dblclick();
    await page.keyboard.press('ControlOrMeta+C');
    const copied = () => page.evaluate('navigator.clipboard.readText()');
    await expect.poll(copied).toBe(MOVED.eventId);
    const aggregate = newest.getByRole('link', { name: MOVED.aggregateId ?? '' });
    expect((await aggregate.boundingBox())?.width).toBeLessThan(100);
    expect(await aggregate.getAttribute('href')).toBe(`#/event/${MOVED.aggregateId}`);
  });

  test('the other Mailrooms on the bus are shown with their consumers, and the command where one has findings', async () => {
    const { page, send } = await opened();
    const shipping = {
      stack: 'shipping-prod',
      state: 'ok',
      parameter: null,
      code: null,
      error: null,
      pending: 0,
      dead: 0,
      next: '',
    } as const;
    const next = 'npx cdk-mailroom status --stack payments-prod';
    await send({
      status: statusOf('ok', []),
      eventsSince: 0,
      neighbors: [
        { ...shipping, consumers: { parcels: { backlog: 12, deadLetters: 0 } } },
        {
          ...shipping,
          stack: 'payments-prod',
          state: 'broken',
          next,
          consumers: { pay: { backlog: 0, deadLetters: 3 } },
        },
        {
          ...shipping,
          stack: 'billing-prod',
          state: null,
          code: 'AccessDenied',
          error: 'no',
          consumers: {},
          next,
        },
      ],
    });
    const consumersOf = (stack: string) => page.getByRole('region', { name: `Consumers of ${stack}` });
    await shows(consumersOf('shipping-prod'), '12');
    await shows(consumersOf('payments-prod'), '3 dead letters');
    await shows(consumersOf('payments-prod'), next);
    await shows(consumersOf('billing-prod'), 'unread: AccessDenied: no');
    for (const stack of ['shipping-prod', 'payments-prod', 'billing-prod']) {
      const box = await consumersOf(stack).boundingBox();
      expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(1280);
    }
  });

  test('an empty list says how far back it was searched', async () => {
    const { page, send } = await opened();
    await send({});
    await shows(page.getByRole('region', { name: 'Newest events' }), 'Reading');
    await send({ at: 6 * 3_600_000, eventsSince: 0 });
    await shows(page, 'No events in the last 6 h. New events appear here.');
  });

  test('new events move along the edges, and not with reduced motion', async () => {
    const first = await opened({ reducedMotion: 'no-preference' });
    const still = await openPage(browser as Browser, await first.ui.newRedirect());
    onTestFinished(() => still.page.context().close());
    for (const page of [first.page, still.page]) await countDots(page);
    await expect.poll(() => first.listeners.size).toBe(2);
    await first.send({ events: [], eventsSince: 0 });
    for (const page of [first.page, still.page]) await shows(page, 'No events in the last');
    await first.send({ events: [MOVED] });
    for (const page of [first.page, still.page]) await shows(page, 'OrderPlaced');
    await expect.poll(() => first.page.evaluate('dots')).toBeGreaterThan(1);
    expect(await still.page.evaluate('dots')).toBe(0);
  });
});

const TEXT_FIELDS = [
  '<input>',
  '<input type="search">',
  '<input type="number">',
  '<input type="date">',
  '<input type="unknown">',
  '<textarea></textarea>',
  '<select></select>',
  '<p contenteditable></p>',
];

/** Some are not visible: a field in a dialog keeps the focus until the frame after the dialog is closed. */
const NO_TEXT_FIELDS = [
  ...['button', 'checkbox', 'color', 'file', 'hidden', 'image', 'radio', 'range', 'reset', 'submit'].map(
    (type) => `<input type="${type}">`,
  ),
  '<button type="button"></button>',
  '<dialog><input></dialog>',
  '<dialog><textarea></textarea></dialog>',
  '<div hidden><select></select></div>',
  '<div hidden><p contenteditable></p></div>',
  '<details><input></details>',
];

const MOVED: FlowEvent = {
  eventId: '01a1fe32-7358-7e75-8b69-4ee374467501',
  at: 1,
  type: 'OrderPlaced',
  source: 'orders',
  status: 'PUBLISHED',
  consumers: {},
  aggregateType: 'Order',
  aggregateId: '6b3f1c52-8c1e-4a55-9d0c-20b18d1c03ff',
  correlationId: null,
  publishedAt: null,
};

/** The elements, of some, at which the page takes a pressed `/` for its own key. */
async function takenIn(page: Page, elements: readonly string[]): Promise<string[]> {
  return page.evaluate(`${JSON.stringify(elements)}.filter((markup) => {
    const parent = document.createElement('div');
    parent.innerHTML = markup;
    document.body.append(parent);
    const target = parent.querySelector('input, textarea, select, button, p');
    const isLeft = target.dispatchEvent(new KeyboardEvent('keydown', { key: '/', bubbles: true, cancelable: true }));
    parent.remove();
    return !isLeft;
  })`);
}

async function setHidden(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate(
    `Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true }); document.dispatchEvent(new Event('visibilitychange'));`,
  );
}

/** Counts the dots that the page adds, as the global `dots`. */
async function countDots(page: Page): Promise<void> {
  await page.evaluate(`
    globalThis.dots = 0;
    new MutationObserver((changes) => {
      for (const { addedNodes } of changes)
        for (const node of addedNodes) if (node.nodeName === 'circle') globalThis.dots += 1;
    }).observe(document.body, { childList: true, subtree: true });
  `);
}
