import type { Browser } from 'playwright-core';
import { afterAll, describe, expect, test } from 'vitest';
import type { DemoReceipt } from '../../cli/page/server/protocol.ts';
import { RECEIPT } from '../support/demo-receipt.ts';
import { launchBrowser } from './support/chromium.ts';
import { openedInMemory, statusOf } from './support/memory-page.ts';
import { axeViolations, shows, sidewaysPx } from './support/opened-page.ts';

const browser = await launchBrowser();

/** The page of a demo whose run is over. */
async function afterRun(receipt: DemoReceipt, options: Parameters<typeof openedInMemory>[1] = {}) {
  const state = {
    ...{ faults: [], phase: 'over' as const, placed: receipt.orders, orders: receipt.orders, endsAt: null },
    receipt,
  };
  const act = async () => {};
  const demo = {
    ...{ state: () => state, break: act, repair: act, onChange: () => () => {} },
    ...{ endRun: () => {}, startRun: () => {} },
  };
  const opened = await openedInMemory(browser as Browser, options, { demo });
  await opened.send({ status: statusOf('ok', []) });
  for (const listener of opened.listeners) listener({ kind: 'demo', demo: state });
  const result = opened.page.getByRole('region', { name: 'Result of the run' });
  await result.waitFor();
  return { ...opened, result };
}

describe.skipIf(browser === undefined)('the result of a run of the demo', () => {
  afterAll(() => browser?.close());

  test('its headline is the first and largest text of the screen, and begins in the first 200 pixels', async () => {
    const { page, result } = await afterRun(RECEIPT);
    const headline = result.getByRole('heading', { name: 'Nothing lost, nothing duplicated' });
    expect((await headline.boundingBox())?.y).toBeLessThan(200);
    const sizes = await page.evaluate<{ readonly own: number; readonly others: number }>(`(() => {
      const sizeOf = (element) => parseFloat(getComputedStyle(element).fontSize);
      const own = document.querySelector('.receipt-headline h2');
      const others = [...document.querySelectorAll('body *')].filter((element) => element !== own);
      return { own: sizeOf(own), others: Math.max(...others.map(sizeOf)) };
    })()`);
    expect(sizes.own).toBeGreaterThan(sizes.others);
    const [result1, flow] = await Promise.all(
      [result, page.getByRole('region', { name: 'Flow of events' })].map((part) => part.boundingBox()),
    );
    expect(result1?.y).toBeLessThan(flow?.y ?? 0);
  });

  test('draws orders, events and messages per second and the latencies, each with its text', async () => {
    const { result } = await afterRun(RECEIPT);
    for (const name of [
      'Orders placed per second: 30 in total, at most 11/s',
      'Events published per second: 96 in total, at most 38/s',
      'Messages processed per second: 161 in total, at most 70/s',
    ]) {
      const bars = result.getByRole('img', { name });
      const heights = await bars
        .locator('rect')
        .evaluateAll((rects) => rects.map((rect) => Number(rect.getAttribute('height'))));
      expect(heights).toHaveLength(4);
      expect(Math.max(...heights)).toBeGreaterThan(20);
    }
    await shows(result, 'Time since the first order');
    await shows(result, 'Time from the commit');
    const published = result.locator('.latency').filter({ hasText: 'until published' });
    expect((await published.innerText()).replaceAll(/\s+/g, ' ')).toContain(
      'p50 124 ms p90 410 ms p99 1,337 ms',
    );
    const shapes = await published
      .locator('.legend path')
      .evaluateAll((paths) => new Set(paths.map((path) => path.getAttribute('d'))).size);
    expect(shapes, 'the percentiles differ in shape, not in color').toBe(3);
  });

  test('names what was lost before everything else', async () => {
    const problem = '2 orders are not charged';
    const { result } = await afterRun({ ...RECEIPT, headline: 'Something was lost', problems: [problem] });
    const texts = (await result.innerText()).split('\n').filter((line) => line.trim() !== '');
    expect(texts.slice(0, 2)).toEqual(['Something was lost', problem]);
    expect(await result.locator('.receipt-headline').getAttribute('class')).toContain('is-broken');
  });

  test.each([1_440, 1_280, 390])('is readable at %i pixels, light and dark', async (width) => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const viewport = { width, height: 900 };
      const { page } = await afterRun(RECEIPT, { viewport, colorScheme });
      expect(await sidewaysPx(page)).toBe(0);
      expect(await axeViolations(page)).toEqual([]);
    }
  });
});
