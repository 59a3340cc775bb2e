import type { Browser, Page } from 'playwright-core';
import { afterAll, describe, expect, test } from 'vitest';
import type { WhyDocument } from '../../cli/page/client/event/waterfall.ts';
import type { StatusDocument } from '../../cli/page/server/protocol.ts';
import type { Reading } from '../../cli/page/server/readings.ts';
import { launchBrowser } from './support/chromium.ts';
import { openedInMemory, statusOf } from './support/memory-page.ts';
import { shows } from './support/opened-page.ts';

const browser = await launchBrowser();

const letters = { code: 'dead-letters', part: 'consumer:worker', count: 3, commands: [] };

/** The status of a Mailroom in trouble: three dead letters, and six messages that are retried. */
const TROUBLE: StatusDocument = {
  ...statusOf('broken', [
    { ...letters, state: 'broken', what: '3 dead letters in consumer:worker' },
    { ...letters, state: 'look', code: 'failing', part: 'worker', what: 'worker fails at every message' },
  ]),
  deadLetterSources: [{ source: 'consumer:worker', count: 3, oldestAt: null, firstExpiryAt: null }],
  consumers: {
    worker: {
      ...{ queued: 0, inFlight: 0, backlog: 0, deadLetters: 3, undelivered: 0, forwardsTo: null },
      ...{ failed: 6, rejected: 3, unreadable: 0, stale: 0, oldestUnprocessedMs: 0 },
    },
  },
};

const ID = '01a1fe32-7358-7e75-8b69-4ee374467501';
const ERROR = `BankError: ${'https://bank.example.com/v1/charges/'.repeat(6)}`;

type Delay = NonNullable<WhyDocument['verdict']['delay']>;

const ENABLE = 'aws lambda update-event-source-mapping --uuid 1 --enabled';
const AUDIT = 'npx cdk-mailroom audit --since 1h';

/** A message behind a mapping that is disabled, one that may be lost, and an event that no sweep publishes. */
const DELAYS: Readonly<Record<string, { readonly consumer: string | null; readonly delay: Delay }>> = {
  stopped: {
    consumer: 'payments',
    delay: {
      place:
        'OrderPlaced was published 3 min ago; payments has not claimed it yet. Its queue has 112 messages waiting.',
      problem: 'payments receives nothing: its event source mapping is disabled.',
      ...{ asksFirst: true, before: 'aws cloudtrail lookup-events --max-results 5' },
    },
  },
  lost: {
    consumer: 'payments',
    delay: {
      place: 'OrderPlaced was published 9 min ago; payments has not claimed it yet.',
      problem: 'Either payments does not receive messages, or it is behind, or this message is lost.',
      ...{ asksFirst: false, before: AUDIT },
    },
  },
  stuck: {
    consumer: null,
    delay: {
      place: 'OrderPlaced is not published, and is leased until 2031.',
      ...{ problem: null, asksFirst: false, before: null },
    },
  },
};

/** A reading of `why` for an event that waits although it should not. */
function delayedReading(name: string): Reading {
  const { consumer = null, delay } = DELAYS[name] ?? {};
  const { document, ...rest } = rejectedReading(null);
  const { events, ...why } = document as unknown as WhyDocument;
  const verdict = {
    ...{ state: consumer === null ? 'stuck' : 'late', eventId: ID, consumer, cause: null, deadLetter: null },
    ...{ text: `Seven lines, and \`${AUDIT}\` in them.`, next: ENABLE, delay },
  };
  const [event] = events;
  return {
    ...rest,
    document: { ...why, effectsInDoubt: [], events: [event], verdict },
  } as unknown as Reading;
}

/** A reading of `why` for an event that was rejected after attempts that ended alike. */
function rejectedReading(verdict: string | null): Reading {
  const ended = [1, 2, 3].map((n) => ({
    ...{ at: n * 1_000, what: 'attempt-ended', consumer: 'payments-of-customers', cause: 'alike' },
    text: `attempt ${n} of 3 failed: ${ERROR}`,
  }));
  const event = {
    ...{ eventId: ID, type: 'OrderPlaced', source: 'orders', aggregateType: null, aggregateId: null },
    ...{ occurredAt: 1, correlationId: ID, causationId: null, traceId: null, status: 'PUBLISHED' },
    ...{ consumers: { 'payments-of-customers': 'REJECTED' }, caused: [], story: ended },
  };
  const other = { ...event, eventId: `${ID.slice(0, -1)}2`, type: 'StockReserved', consumers: {}, story: [] };
  const charge = { eventId: ID, consumer: 'payments-of-customers', effect: 'charge', state: 'failed' };
  const document = {
    verdict: {
      ...{ state: 'rejected', eventId: ID, consumer: 'payments-of-customers' },
      ...{ text: 'Seven lines of eight facts.', next: 'npx cdk-mailroom dlq redrive consumer:worker 1' },
      cause: ERROR,
      delay: null,
      deadLetter: { source: 'consumer:worker', id: '1', expiresAt: Date.now() + 86_400_000 * 9, verdict },
    },
    ...{ events: [event, other], more: false, searchedTo: null },
    ...{ effectsInDoubt: [{ ...charge, key: 'the-key', startedAt: 1 }], openEffects: [] },
  };
  return { ...DONE, document } as unknown as Reading;
}

const DONE = { command: 'npx cdk-mailroom why', exitCode: 0, at: 1, error: null, notes: [] };

describe.skipIf(browser === undefined)('the answer of a screen', () => {
  afterAll(() => browser?.close());

  test('the headline counts the lines of the list, and the badges what their screens list', async () => {
    const { page, send } = await openedInMemory(browser as Browser);
    await send({ status: TROUBLE });
    await shows(page.locator('.headline'), '1 problem, 1 warning');
    const list = page.getByRole('region', { name: 'What to do' });
    expect(await list.getByRole('listitem').count()).toBe(2);
    await shows(page.getByRole('link', { name: 'Dead letters 3' }), 'Dead letters');
    await shows(page.getByRole('link', { name: 'Messages 9' }), 'Messages');
  });

  test('a finding stays open while its numbers change, also beside one with its id', async () => {
    const { page, send } = await openedInMemory(browser as Browser);
    const finding = {
      ...letters,
      id: 'settings/worker',
      state: 'broken' as const,
      commands: ['npx cdk deploy'],
    };
    const both = (n: number) =>
      statusOf('broken', [
        { ...finding, what: `its table is another one, for ${n} s` },
        { ...finding, what: `its queue is another one, for ${n} s` },
      ]);
    await send({ status: both(1) });
    const items = page.getByRole('region', { name: 'What to do' }).getByRole('listitem');
    await items.nth(1).getByRole('button').first().click();
    await shows(items.nth(1).locator('code'), 'npx cdk deploy');
    await send({ status: both(2) });
    await shows(items.nth(1), 'its queue is another one, for 2 s');
    expect(await items.nth(1).locator('code').isVisible()).toBe(true);
    expect(await items.nth(0).locator('code').isVisible()).toBe(false);
  });

  test('Flow begins with what to do, then the flow, then the faults of the demo in a line each', async () => {
    const repair = 'aws events enable-rule';
    const fault = {
      name: 'rule-off',
      text: 'Its rule is disabled.',
      state: 'broken',
      error: null,
      repair,
    } as const;
    const whole = { ...fault, name: 'bank-down', state: 'whole', repair: '' } as const;
    const state = {
      ...{ faults: [fault, whole], placed: 1, orders: 2, endsAt: null, receipt: null },
      phase: 'ordering' as const,
    };
    const act = async () => {};
    const demo = {
      ...{ state: () => state, break: act, repair: act, onChange: () => () => {} },
      ...{ endRun: () => {}, startRun: () => {} },
    };
    const { page, send, listeners } = await openedInMemory(browser as Browser, {}, { demo });
    await send({ status: TROUBLE });
    for (const listener of listeners) listener({ kind: 'demo', demo: state });
    const tops = ['What to do', 'Flow of events', 'Break it'].map(async (name) => {
      const box = await page.getByRole('region', { name }).boundingBox();
      return box?.y ?? 0;
    });
    const [toDo = 0, flow = 0, breaking = 0] = await Promise.all(tops);
    expect([toDo < flow, flow < breaking]).toEqual([true, true]);
    await shows(page.locator('[data-fault="bank-down"]'), 'healthy');
    const line = page.locator('[data-fault="rule-off"]');
    expect((await line.boundingBox())?.height).toBeLessThan(60);
    expect(await line.getByText(repair).isVisible()).toBe(false);
    await line.getByRole('button', { name: /^Command/ }).click();
    await shows(line, repair);
  });

  test('a rejected event shows its cause, effect in doubt, deadline and one action', async () => {
    const read = async () => rejectedReading('runs');
    const { page } = await openedInMemory(browser as Browser, {}, { read, allowsChanges: true });
    await goToEvent(page);
    const titles = page.locator('.verdict-facts dt');
    expect(await titles.allInnerTexts()).toEqual(['Cause', 'Effect in doubt', 'Deadline']);
    const notice = page.locator('.notice').filter({ hasText: 'Rejected at payments-of-customers' });
    expect(await notice.getByRole('button').allInnerTexts()).toEqual(['Plan a redrive']);
    expect(await notice.getByText('Seven lines').isVisible()).toBe(false);
    await notice.getByText('The whole verdict').click();
    await shows(notice, 'Seven lines of eight facts.');
  });

  test.each([
    ['stopped', 'Late at payments', ['Where', 'Cause', 'Ask first'], /cloudtrail lookup-events/],
    ['lost', 'Late at payments', ['Where', 'Cause unknown', 'To tell which'], AUDIT],
    ['stuck', 'Stuck at the outbox', ['Where'], ENABLE],
  ])('an event that is %s is %s: it shows %j and the command', async (name, title, labels, before) => {
    const { page } = await openedInMemory(
      browser as Browser,
      {},
      { read: async () => delayedReading(name), allowsChanges: true },
    );
    await goToEvent(page);
    const notice = page.locator('.notice').filter({ hasText: title });
    await notice.waitFor();
    expect(await page.locator('.verdict-facts dt').allInnerTexts()).toEqual(labels);
    await shows(notice, before);
    const commands = notice.locator('.command code').filter({ visible: true });
    expect((await commands.allInnerTexts()).at(-1)).toBe(ENABLE);
    expect(await notice.getByText('Seven lines').isVisible()).toBe(false);
    await notice.getByText('The whole verdict').click();
    expect(await notice.locator('details p code').first().innerText()).toBe(AUDIT);
    expect(await notice.innerText()).not.toContain('`');
  });

  test.each([
    ['runs', /npx cdk-mailroom dlq redrive/],
    ['fails', 'Open its dead letter'],
  ])('a read-only page offers for a dead letter that %s: %s', async (verdict, action) => {
    const { page } = await openedInMemory(
      browser as Browser,
      {},
      { read: async () => rejectedReading(verdict) },
    );
    await goToEvent(page);
    await shows(page.locator('.notice'), action);
    expect(await page.getByRole('button', { name: 'Plan a redrive' }).count()).toBe(0);
  });

  test('the timeline breaks no name or time, and attempts that ended alike are one row', async () => {
    const viewport = { width: 1440, height: 900 };
    const { page } = await openedInMemory(
      browser as Browser,
      { viewport },
      { read: async () => rejectedReading('runs') },
    );
    await goToEvent(page);
    const row = page.getByRole('row').filter({ hasText: 'attempt 3 of 3' });
    await shows(row, '2 earlier attempts ended alike');
    const heights = await row
      .locator('.clock, .name')
      .evaluateAll((cells) =>
        cells.filter((cell) => cell.checkVisibility()).map((cell) => cell.getBoundingClientRect().height),
      );
    expect(heights).toHaveLength(3);
    expect(Math.max(...heights)).toBeLessThan(30);
  });

  test('a reading that takes longer than 10 s names what it checks', async () => {
    const read = () => new Promise<never>(() => {});
    const { page, send } = await openedInMemory(browser as Browser, {}, { read });
    await shows(page.locator('main'), 'Reading');
    await shows(page.locator('main'), /^Checking… the outbox, every queue/);
    await shows(page.locator('.headline'), 'Checking…');
    await send({ status: statusOf('ok', []) });
    await shows(page.locator('.headline'), 'Nothing visible is broken');
    await page.evaluate("location.hash = '#/messages'");
    await shows(page.locator('main'), /^Checking… the inbox of every consumer/);
  });

  test('a screen that is higher than the window is opened with the headline in sight', async () => {
    const { page, send } = await openedInMemory(browser as Browser, {
      viewport: { width: 1280, height: 300 },
    });
    await send({ status: TROUBLE });
    await page.getByRole('region', { name: 'What to do' }).waitFor();
    await page.evaluate("location.hash = '#/flow'");
    await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('main');
    expect(await page.evaluate('scrollY')).toBe(0);
  });
});

async function goToEvent(page: Page): Promise<void> {
  await page.evaluate(`location.hash = '#/event/${ID}'`);
  await page.getByRole('heading', { level: 1, name: 'OrderPlaced' }).waitFor();
}
