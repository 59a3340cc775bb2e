import { setTimeout as sleep } from 'node:timers/promises';
import { DisableRuleCommand, EnableRuleCommand, EventBridgeClient } from '@aws-sdk/client-eventbridge';
import {
  LambdaClient,
  ListEventSourceMappingsCommand,
  UpdateEventSourceMappingCommand,
} from '@aws-sdk/client-lambda';
import { SSMClient } from '@aws-sdk/client-ssm';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { required } from '../../demo/readings.ts';
import { ruleName } from '../../lambdas/runtime/operations/audit/audit-drift.ts';
import { readDirectory } from '../../lambdas/runtime/operations/ssm-directory.ts';
import { ACTS } from '../attack/hostile-text.ts';
import { eventually } from '../local/support/eventually.ts';
import { mailroom } from '../local/support/mailroom.ts';
import { placeOrder } from '../local/support/order-system.ts';
import { launchBrowser } from './support/chromium.ts';
import { axeViolations, type OpenedPage, shows, sidewaysPx } from './support/opened-page.ts';
import { isPictured } from './support/pictures.ts';
import { applyPlan, headline, readSource, SCREENS, type ScreenName, visit } from './support/screens.ts';
import { createSeeds } from './support/seeds.ts';
import { serveUi, type UiServer } from './support/ui-server.ts';

const browser = await launchBrowser();
const [endpoint, outputs] = [inject('endpoint'), inject('outputs')];

const PHONE = { width: 390, height: 844 };

/** The picture of the README: sharp on a dense display. */
const PICTURE = { viewport: { width: 1280, height: 760 }, deviceScaleFactor: 2 };

/** The rates on the page are those of the last minute: a picture shows a whole one, without the first reading. */
const RATES_MS = 68_000;

const DEAD_EVENTS = 10_000;

/** A text that would run a script, set a terminal's title, and turn or hide what follows it. */
const HOSTILE =
  '<img src=x onerror="globalThis.hacked=1">\u001b]0;t\u0007\u202egnp\u2066\u200b<script>hacked=1</script>';

/** The screens whose pictures need nothing but a visit, and their parts that differ from run to run. */
const PICTURED: Partial<Record<ScreenName, readonly string[]>> = {
  messages: [],
  doctor: ['.answer', '.findings'],
  // Its counts and its verdict depend on the age of the events.
  audit: ['.answer', '[aria-label="Result"]'],
  operations: ['tbody'],
};

// Each leaves the order system as it found it, or adds what the following ones need.
describe.skipIf(browser === undefined)('a screen of the page', () => {
  const seeds = createSeeds({ endpoint, outputs });
  let writing: UiServer;
  let reading: UiServer;
  let failing: string;
  let hostileId: string;

  beforeAll(async () => {
    writing = await serveUi(endpoint, { allowsChanges: true, showsPayloads: true });
    reading = await serveUi(endpoint, { allowsChanges: false, showsPayloads: false });
  });

  afterAll(async () => {
    await writing?.stop();
    await reading?.stop();
    await browser?.close();
  });

  /** Opens a tab that is closed, and must not have had a problem, when the test ends. */
  async function tab(options?: BrowserContextOptions, server = writing): Promise<OpenedPage> {
    const opened = await server.open(browser as Browser, options);
    onTestFinished(opened.close);
    return opened;
  }

  test('Flow: nothing visible is broken in a system at rest', async () => {
    const { page } = await tab();
    await headline(page, /Nothing visible is broken/);
    await shows(page.locator('main'), 'order-status');
  });

  test('Flow: under load, a consumer whose event source mapping is off is named, and its backlog rises', async () => {
    const lambda = new LambdaClient({ endpoint });
    const { consumers } = await readDirectory(new SSMClient({ endpoint }), required(outputs, 'TableName'));
    const FunctionName = consumers.find(({ name }) => name === 'notifications')?.function;
    const { EventSourceMappings: [mapping] = [] } = await lambda.send(
      new ListEventSourceMappingsCommand({ FunctionName }),
    );
    const switchTo = (Enabled: boolean) =>
      lambda.send(new UpdateEventSourceMappingCommand({ UUID: mapping?.UUID, Enabled }));
    const isOver = new AbortController();
    const load = placeOrders(isOver.signal);
    try {
      await switchTo(false);
      // A server of its own, which reads everything now: it looks for what is switched off only once a minute.
      const fresh = await serveUi(endpoint, { allowsChanges: true, showsPayloads: true });
      onTestFinished(fresh.stop);
      for (const colorScheme of ['light', 'dark'] as const) {
        const { page } = await tab({ colorScheme, ...PICTURE }, fresh);
        await shows(page.getByRole('region', { name: 'What to do' }), /notifications receives no messages/);
        const consumer = page.getByRole('listitem').filter({ hasText: 'Mapping off' });
        await consumer.getByTitle('rising').waitFor();
        if (process.env.PICTURES === 'renew' && colorScheme === 'light') await sleep(RATES_MS);
        await isPictured(page, colorScheme === 'light' ? 'console' : 'console-dark', ['.metric']);
      }
    } finally {
      isOver.abort();
      await switchTo(true);
      await load;
    }
    const { page } = await tab();
    await headline(page, /Nothing visible is broken/);
  });

  test('Flow: a rule that is off and dead letters are named with the commands that help', async () => {
    const bridge = new EventBridgeClient({ endpoint });
    const ssm = new SSMClient({ endpoint });
    const directory = await readDirectory(ssm, required(outputs, 'TableName'));
    const inventory = directory.consumers.find(({ name }) => name === 'inventory');
    const rule = { Name: inventory && ruleName(inventory), EventBusName: directory.mailroom.bus };
    failing = await seeds.placeFailingOrder();
    await eventually(async () => {
      const { consumers } = (await mailroom('status', '--json')).json();
      expect(consumers.payments.deadLetters).toBe(1);
    });
    onTestFinished(async () => {
      await bridge.send(new EnableRuleCommand(rule));
    });
    await bridge.send(new DisableRuleCommand(rule));
    // A server of its own, which reads everything now: it looks for what is switched off only once a minute.
    const fresh = await serveUi(endpoint, { allowsChanges: true, showsPayloads: true });
    onTestFinished(fresh.stop);
    const { page } = await tab({}, fresh);
    const findings = page.getByRole('region', { name: 'What to do' });
    await shows(findings, /consumer:payments/);
    await shows(findings, /inventory receives no events/);
    await isPictured(page, 'ui-flow');
    await findings.getByRole('button', { name: '3 commands' }).click();
    await shows(findings, /aws events enable-rule/);
    const dark = await tab({ colorScheme: 'dark' }, fresh);
    await shows(dark.page.getByRole('region', { name: 'What to do' }), /inventory receives no events/);
    await isPictured(dark.page, 'ui-flow-dark');
  });

  test('Event: the verdict, the next command and the consumers of an event; the payload on request', async () => {
    const opened = await tab();
    await visit(opened, 'event', failing);
    const { page } = opened;
    await shows(page.locator('main'), /rejected at payments/);
    // For a moment its message is still on its way to the dead-letter queue.
    await expect
      .poll(
        async () => {
          await page.getByRole('button', { name: 'Read again' }).click();
          return await page.locator('main').innerText();
        },
        { interval: 1_000 },
      )
      .toMatch(/Plan a redrive/);
    await page.locator('button:not([aria-disabled])', { hasText: 'Read again' }).waitFor();
    await isPictured(page, 'ui-event');
    await page.getByRole('button', { name: 'Show the payload' }).click();
    await shows(page.locator('main'), /fail-9/);
  });

  test('Flow and Event show a scheduled event, and that it was cancelled', async () => {
    // Sooner than the expiry of any order that the other tests placed.
    const { eventId, cancel } = await seeds.schedule(5 * 60_000);
    onTestFinished(async () => {
      await cancel();
    });
    // A server of its own: it reads what is scheduled once a minute.
    const fresh = await serveUi(endpoint, { allowsChanges: false, showsPayloads: false });
    onTestFinished(fresh.stop);
    const opened = await tab({}, fresh);
    const { page } = opened;
    const outbox = page.locator('[data-node="outbox"]');
    await shows(outbox, /Scheduled within 1 h\s*\d+\s*next in [1-5] min/);
    expect(await outbox.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0);
    await opened.go(`#/event/${eventId}`, 'OrderPlaced');
    await shows(page.locator('main'), /is due in [1-5] min .*: it was scheduled by orders at/);
    expect(await cancel()).toBe('cancelled');
    await page.getByRole('button', { name: 'Read again' }).click();
    await shows(page.locator('main'), /was cancelled by orders at .* and is never published/);
  });

  test('Dead letters: by cause, a plan that Escape closes, and a discard by typed confirmation', async () => {
    const [discarded = ''] = await seeds.writeDead(1, { fingerprint: 'a cause to discard' });
    const opened = await tab();
    const { page } = opened;
    await visit(opened, 'dead-letters', failing);
    await isPictured(page, 'ui-dead-letters');
    const row = page.getByRole('row').filter({ hasText: 'a cause to discard' });
    await row.getByRole('button', { name: 'Discard' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.locator('form').waitFor();
    expect(await dialog.getByRole('button', { name: 'Apply', exact: true }).isDisabled()).toBe(true);
    await isPictured(page, 'ui-plan');
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });

    await row.getByRole('button', { name: 'Discard' }).click();
    await dialog.locator('form').waitFor();
    await applyPlan(page, 'it was a test order');
    await shows(page.locator('.run'), /done/);
    await expect.poll(() => page.evaluate('document.activeElement.matches(".run")')).toBe(true);
    await page.locator('.run').getByRole('button', { name: 'Dismiss' }).press('Enter');
    await page.locator('.run').waitFor({ state: 'detached' });
    await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('main');
    await opened.go(`#/event/${discarded}`, 'OrderPlaced');
    await shows(page.locator('main'), /discarded/);
  });

  test('a page that is read-only shows plans as commands, and applies none', async () => {
    const { page, go } = await tab({}, reading);
    await go('#/dead-letters', 'Dead letters');
    await readSource(page, 'consumer:payments');
    await page.getByRole('button', { name: 'Plan a redrive of all' }).click();
    const dialog = page.getByRole('dialog');
    await shows(dialog, /read-only/);
    await shows(dialog, /npx cdk-mailroom dlq redrive consumer:payments/);
    expect(await dialog.getByRole('button', { name: 'Apply', exact: true }).count()).toBe(0);
    await page.keyboard.press('Escape');
    await go(`#/event/${failing}`, 'OrderPlaced');
    await shows(page.locator('main'), /mailroom ui --payload/);
    expect(await page.getByRole('button', { name: 'Show the payload' }).count()).toBe(0);
  });

  test('stored text is shown and neither runs nor hides anything', async () => {
    [hostileId = ''] = await seeds.writeDead(1, {
      ...{ type: HOSTILE, source: HOSTILE, lastError: HOSTILE, fingerprint: HOSTILE, customerId: HOSTILE },
    });
    const opened = await tab();
    const { page } = opened;
    const isHarmless = async () => {
      const text = await page.locator('body').innerText();
      expect(text).toContain('<img src=x onerror=');
      expect(text.replaceAll(/[\n\t]/g, '')).not.toMatch(ACTS);
      expect(await page.evaluate('globalThis.hacked')).toBeUndefined();
      expect(await page.locator('img, main script').count()).toBe(0);
    };
    await shows(page.locator('main'), /onerror/);
    await isHarmless();
    await opened.go(`#/event/${hostileId}`, /onerror/);
    await page.getByRole('button', { name: 'Show the payload' }).click();
    await shows(page.locator('main'), /customerId/);
    await isHarmless();
    await opened.go('#/dead-letters', 'Dead letters');
    await readSource(page, 'dead');
    await isHarmless();
  });

  for (const colorScheme of ['light', 'dark'] as const) {
    test(`axe-core finds no serious violation on any screen, ${colorScheme}`, async () => {
      const opened = await tab({ colorScheme });
      for (const screen of SCREENS) {
        await visit(opened, screen, failing);
        expect(await axeViolations(opened.page), screen).toEqual([]);
        const varying = PICTURED[screen];
        if (colorScheme === 'light' && varying !== undefined)
          await isPictured(opened.page, `ui-${screen}`, varying);
      }
    });
  }

  test('no screen scrolls sideways on a phone, nor in a window of 1280 pixels at a zoom of 200 % or 400 %', async () => {
    const opened = await tab({ viewport: PHONE });
    for (const screen of SCREENS) {
      await visit(opened, screen, failing);
      for (const width of [640, 320, PHONE.width]) {
        await opened.page.setViewportSize({ ...PHONE, width });
        expect(await sidewaysPx(opened.page), `${screen} at ${width}`).toBeLessThanOrEqual(0);
      }
    }
  });

  test('no screen skips a level of headings, and a screen at rest announces nothing', async () => {
    const opened = await tab();
    const { page } = opened;
    for (const screen of SCREENS) {
      await visit(opened, screen, failing);
      const levels = await page.evaluate<number[]>(
        `[...document.querySelectorAll('main :is(h1, h2, h3, h4)')].map(({ tagName }) => Number(tagName[1]))`,
      );
      const skipping = levels.filter((level, index) => level > (levels[index - 1] ?? 1) + 1);
      expect(skipping, screen).toEqual([]);
    }
    await visit(opened, 'event', failing);
    await page.evaluate(`
      globalThis.said = [];
      globalThis.ticks = 0;
      new MutationObserver((changes) => {
        for (const { target } of changes) {
          const element = target.nodeType === Node.ELEMENT_NODE ? target : target.parentElement;
          const region = element?.closest('main :is([role="status"], [role="alert"], [aria-live])');
          if (region && region.textContent !== '') said.push(region.outerHTML);
          if (element?.closest('time')) ticks += 1;
        }
      }).observe(document.body, { childList: true, characterData: true, subtree: true });
    `);
    await expect.poll(() => page.evaluate('ticks')).toBeGreaterThan(2);
    expect(await page.evaluate('said')).toEqual([]);
  });

  test('every control can be reached with the Tab key, and every focus is visible', async () => {
    const opened = await tab();
    const { page } = opened;
    for (const screen of SCREENS) {
      await visit(opened, screen, failing);
      expect(await unreachable(opened), screen).toEqual([]);
    }
    await page.keyboard.press('Shift+Tab');
  });

  test('10,000 dead letters are shown in pages', async () => {
    await seeds.writeDead(DEAD_EVENTS);
    const opened = await tab();
    const { page } = opened;
    await shows(page.getByRole('region', { name: 'What to do' }), /10,?\d{3} DEAD events/);
    await opened.go('#/dead-letters/dead', 'dead');
    await readSource(page, 'dead');
    await page.getByRole('table').getByRole('link').filter({ hasText: 'MalformedDetail' }).press('Enter');
    await page.getByRole('navigation', { name: 'Pages of the table' }).waitFor();
    const rows = page.getByRole('table').getByRole('row');
    await expect.poll(() => rows.count()).toBe(51);
    await page.getByRole('button', { name: 'Next' }).click();
    await shows(page.getByRole('navigation', { name: 'Pages of the table' }), /^51–100 of/);
    await page.getByRole('table').getByRole('link').first().press('Enter');
    await page.getByRole('button', { name: 'Read again' }).waitFor();
    await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('main');
  });
});

/**
 * Places about three orders a second until a signal. At most three are on their way: a busy machine gets fewer, and answers each before
 * its function's time is over.
 */
async function placeOrders(signal: AbortSignal): Promise<void> {
  await Promise.all(
    Array.from({ length: 3 }, async () => {
      while (!signal.aborted) await Promise.all([placeOrder(), sleep(1_000)]);
    }),
  );
}

/** The controls that the Tab key does not reach from the top of the page, and those that do not show that they have the focus. */
async function unreachable({ page }: OpenedPage): Promise<string[]> {
  const controls = await page.evaluate<number>(`
    window.controls = [...document.querySelectorAll('a[href], button:enabled, input:enabled, select:enabled, summary')]
      .filter((element) => element.checkVisibility({ visibilityProperty: true }));
    window.reached = new Set();
    window.blind = new Set();
    document.activeElement?.blur();
    window.controls.length`);
  for (let presses = 0; presses < 2 * controls + 10; presses += 1) {
    await page.keyboard.press('Tab');
    const isDone = await page.evaluate<boolean>(`(() => {
      const focused = document.activeElement;
      if (window.controls.includes(focused)) window.reached.add(focused);
      const style = getComputedStyle(focused);
      if (focused !== document.body && style.outlineStyle === 'none' && style.boxShadow === 'none') window.blind.add(focused);
      return window.reached.size === window.controls.length;
    })()`);
    if (isDone) break;
  }
  return await page.evaluate<string[]>(`[
    ...window.controls.filter((element) => element.isConnected && !window.reached.has(element)).map((element) => 'not reached: ' + element.outerHTML),
    ...[...window.blind].map((element) => 'focus not visible: ' + element.outerHTML.slice(0, 200)),
  ]`);
}
