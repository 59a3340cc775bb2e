import type { Browser } from 'playwright-core';
import { afterAll, describe, expect, test } from 'vitest';
import type { Reading, ReadingRequest } from '../../cli/page/server/readings.ts';
import { launchBrowser } from './support/chromium.ts';
import { openedInMemory, statusOf } from './support/memory-page.ts';
import { axeViolations, shows, sidewaysPx } from './support/opened-page.ts';

const browser = await launchBrowser();

/** The part of a screen that is read at the first look, pixels from the top. */
const FIRST_LOOK = 200;

const SIZES = [
  { width: 1_440, height: 900 },
  { width: 1_280, height: 900 },
  { width: 390, height: 844 },
];

const ID = '01a1fe32-7358-7e75-8b69-4ee374467501';
const LEDGER = { expected: 3, processed: 2, waiting: 0, deadLetters: 0, inFlight: 0, failed: 0, rejected: 0 };

/** A finding on each screen. */
const DOCUMENTS: Readonly<Record<string, object>> = {
  doctor: {
    ...{ checks: 56, compared: { resources: 84 }, allowed: [], notCompared: [], notChecked: [], skipped: [] },
    problems: [{ part: 'a', problem: 'difference', text: 'The rule of payments is disabled.', commands: [] }],
  },
  audit: {
    ...{ verdict: 'payments: 1 missing', since: 1, until: 2, events: 3, published: 3, pending: 0, dead: 0 },
    ...{ discarded: 0, cancelled: 0, unreadable: 0, inconclusive: [], duplicated: [], drift: [] },
    ...{ unreadableRows: [], changedRows: [], incomplete: [], notAudited: [] },
    consumers: { payments: { ...LEDGER, discarded: 0, missing: 1, inconclusive: 0, unproven: 0 } },
    missing: [{ eventId: ID, type: 'OrderPlaced', consumer: 'payments', publishedAt: 1, row: null }],
  },
  messages: {
    causes: ['inventory', 'payments'].map((consumer, index) => ({
      ...{ consumer, fingerprint: `${consumer} BankError: no answer`, count: 2 - index },
      ...{ oldestAt: 1, newestAt: 1, example: ID },
    })),
    more: false,
  },
  operations: { operations: [], more: false, unreadable: 0 },
  why: {
    verdict: {
      ...{ state: 'processed', eventId: ID, consumer: null, text: 'By payments.', next: null },
      ...{ cause: null, delay: null, deadLetter: null },
    },
    ...{ more: false, searchedTo: null, effectsInDoubt: [], openEffects: [] },
    events: [
      {
        ...{ eventId: ID, type: 'OrderPlaced', source: 'orders', aggregateType: null, aggregateId: null },
        ...{ occurredAt: 1, correlationId: null, causationId: null, traceId: null, status: 'PUBLISHED' },
        ...{ consumers: {}, caused: [], story: [] },
      },
    ],
  },
};

/** A tab with a problem, whose readings answer with the documents above. */
async function opened(viewport: (typeof SIZES)[number], colorScheme: 'light' | 'dark' = 'light') {
  const read = async ({ words: [name = ''] }: ReadingRequest) => {
    const document = DOCUMENTS[name] ?? null;
    const reading = {
      command: `npx cdk-mailroom ${name}`,
      exitCode: 1,
      at: Date.now(),
      error: null,
      notes: [],
    };
    return { ...reading, document } as unknown as Reading;
  };
  const tab = await openedInMemory(
    browser as Browser,
    { viewport, colorScheme },
    { read, allowsChanges: true },
  );
  const part = { code: 'dead-letters', part: 'consumer:payments', count: 3 } as const;
  const what = '3 dead letters in consumer:payments';
  await tab.send({ status: statusOf('broken', [{ ...part, state: 'broken', what, commands: [] }]) });
  const { page } = tab;
  /** Opens a screen, and runs what it reads on a click. */
  const visit = async (screen: string) => {
    await page.evaluate(`location.hash = '#/${screen}'`);
    await page.locator(`[aria-current][href="#/${screen.split('/')[0]}"]`).waitFor();
  };
  const bottomOf = async (text: string | RegExp) => {
    const shown = page.locator('main').getByText(text).first();
    await shown.waitFor();
    const box = await shown.boundingBox();
    return (box?.y ?? Number.POSITIVE_INFINITY) + (box?.height ?? 0);
  };
  return { page, visit, bottomOf };
}

afterAll(() => browser?.close());

describe.skipIf(browser === undefined).each(SIZES)('the first look, $width pixels wide', (size) => {
  test.each([
    ['doctor', 'Not checked yet', 'Run the checks', '1 problem'],
    ['audit', 'Not audited yet', 'Run the audit', 'payments: 1 missing'],
  ])('%s shows its state and its action, then its answer', async (screen, state, action, answer) => {
    const { page, visit, bottomOf } = await opened(size);
    await visit(screen);
    expect(await bottomOf(action)).toBeLessThan(FIRST_LOOK);
    const [line] = await page
      .getByText(state)
      .evaluateAll((found) => found.map((one) => one.getBoundingClientRect().top));
    expect(line).toBeLessThan(FIRST_LOOK);
    await page.getByRole('button', { name: action }).click();
    expect(await bottomOf(answer)).toBeLessThan(FIRST_LOOK);
    expect(await bottomOf('Run again')).toBeLessThan(FIRST_LOOK);
  });

  test('doctor shows its first finding, on a phone its answer', async () => {
    const { page, visit, bottomOf } = await opened(size);
    await visit('doctor');
    await page.getByRole('button', { name: 'Run the checks' }).click();
    const first = size.width > 390 ? 'The rule of payments is disabled' : '1 problem';
    expect(await bottomOf(first)).toBeLessThan(FIRST_LOOK);
  });

  test.each([
    ['flow', '3 dead letters in consumer:payments'],
    ['messages', '3 messages failed and rejected'],
    ['operations', 'No operator changed anything'],
  ])('%s shows its answer', async (screen, answer) => {
    const { visit, bottomOf } = await opened(size);
    await visit(screen);
    expect(await bottomOf(answer)).toBeLessThan(FIRST_LOOK);
  });

  test('an event shows its verdict', async () => {
    const { page, visit } = await opened(size);
    await visit(`event/${ID}`);
    await shows(page.locator('.notice'), 'By payments.');
    const box = await page.locator('.notice-title').boundingBox();
    expect(box?.y).toBeLessThan(FIRST_LOOK - 8);
  });

  test('causes name their consumer in a column', async () => {
    const { page, visit } = await opened(size);
    await visit('messages');
    const names = page.locator('[data-title="Consumer"]');
    await expect.poll(() => names.allInnerTexts()).toEqual(['inventory', 'payments']);
  });

  test('the open screen is in sight in the navigation, and no part is wider than the window', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page, visit } = await opened(size, colorScheme);
      for (const screen of ['operations', 'audit', 'doctor', 'messages', 'flow']) {
        await visit(screen);
        const tab = await page.locator('.tabs [aria-current]').boundingBox();
        expect(tab?.x).toBeGreaterThanOrEqual(0);
        expect((tab?.x ?? 0) + (tab?.width ?? 0)).toBeLessThanOrEqual(size.width);
        expect(await sidewaysPx(page)).toBe(0);
        expect(await axeViolations(page)).toEqual([]);
      }
    }
  });
});

test.skipIf(browser === undefined)(
  'on a phone, the frame above a screen takes less than a sixth of its height',
  async () => {
    const phone = { width: 390, height: 844 };
    const { page } = await opened(phone);
    const box = await page.locator('main').boundingBox();
    expect(box?.y).toBeLessThan(phone.height / 6);
    for (const text of ['mailroom-dev', '111122223333', 'eu-west-1', 'Changes allowed'])
      await shows(page.getByRole('region', { name: 'Environment' }), text);
  },
);
