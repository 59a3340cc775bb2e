import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../localstack/free-port.ts';
import { mailroomAt } from '../local/support/mailroom.ts';
import { launchBrowser } from './support/chromium.ts';
import { type DemoProcess, startDemo } from './support/demo-process.ts';
import { DEMO_MS, type OpenedPage, openPage, shows } from './support/opened-page.ts';
import { applyPlan, breakPart, headline, readPanel, repairPart } from './support/screens.ts';

const browser = await launchBrowser();

describe.skipIf(browser === undefined)('npm run demo -- --ui', () => {
  const ORDERS = 20;
  let demo: DemoProcess;
  let opened: OpenedPage;
  let port: number;

  beforeAll(async () => {
    port = await freePort();
    demo = await startDemo(port, ORDERS);
  });

  /** The messages in the queues of all consumers. */
  const queued = async (): Promise<number> => {
    const { json } = await mailroomAt(`http://127.0.0.1:${port}`, 'status', '--json');
    const consumers: readonly Record<string, number>[] = Object.values(json().consumers);
    return consumers.reduce((sum, { queued = 0, inFlight = 0 }) => sum + queued + inFlight, 0);
  };

  afterAll(async () => {
    await demo?.stop();
    await browser?.close();
  });

  test('shows orders as they flow, a consumer that fails, its repair and a redrive by clicking, and a receipt without problems', async () => {
    expect(demo.output()).not.toContain('Placing');
    opened = await openPage(browser as Browser, demo.redirectFile, {}, DEMO_MS);
    const { page } = opened;
    await shows(page.getByRole('region', { name: 'Newest events' }), 'OrderPlaced');

    await breakPart(page, 'bank-down');
    await headline(page, /\d problem/);
    await shows(page.getByRole('region', { name: 'What to do' }), /dead letters? in consumer:payments/);
    await repairPart(page, 'bank-down');

    // A message that is still retried may become a dead letter.
    await expect.poll(queued, { timeout: DEMO_MS, interval: 1_000 }).toBe(0);
    await redriveAll(opened, 'consumer:payments', 'the bank is back');
    await opened.go('#/flow', 'Flow');
    const receipt = page.locator('.receipt');
    await receipt.waitFor();
    expect(await receipt.innerText()).toContain('Nothing lost, nothing duplicated');
    expect(await receipt.innerText()).toMatch(new RegExp(`^Orders\\s+${ORDERS}$`, 'm'));
    expect(demo.output()).toContain('Nothing lost, nothing duplicated:');
  });

  test('places the orders of another run on the same deployment until that is ended', async () => {
    const { page } = opened;
    const deployed = () => demo.output().match(/Deploying/g)?.length;
    const deployments = deployed();
    await page.getByRole('button', { name: 'New run' }).click();
    await shows(page.locator('#demo-orders'), /^[1-9]\d* of/);
    await page.getByRole('button', { name: 'End the run' }).click();
    const receipt = page.locator('.receipt');
    await receipt.waitFor();
    expect(await receipt.innerText()).toContain('Nothing lost, nothing duplicated');
    const [, placed] = /^Orders\s+(\d+)$/m.exec(await receipt.innerText()) ?? [];
    expect(Number(placed)).toBeLessThan(ORDERS);
    expect(deployed()).toBe(deployments);
    await opened.close();
  });

  test('ends with 0 on Ctrl-C, and leaves neither its engine nor its page running', async () => {
    expect(await demo.stop()).toBe(0);
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
  });
});

/** Redrives the dead letters of a source until none is left. */
async function redriveAll({ page, go }: OpenedPage, source: string, reason: string): Promise<void> {
  await go('#/dead-letters', 'Dead letters');
  for (;;) {
    const panel = await readPanel(page, source);
    if (await panel.getByText('empty').isVisible()) return;
    await panel.getByRole('button', { name: 'Plan a redrive of all' }).click();
    await page.getByRole('dialog').locator('form').waitFor();
    await applyPlan(page, reason);
    const run = page.locator('.run');
    await run.getByText(/^done/).first().waitFor();
    await run.getByRole('button', { name: 'Dismiss' }).click();
  }
}
