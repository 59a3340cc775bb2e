import { rm } from 'node:fs/promises';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createReader } from '../../demo/readings.ts';
import { type Outputs, readOutputs } from '../../localstack/cdk-process.ts';
import { freePort } from '../../localstack/free-port.ts';
import { localEnvironment, localFile } from '../../localstack/workspace.ts';
import { launchBrowser } from './support/chromium.ts';
import { type DemoProcess, startDemo } from './support/demo-process.ts';
import { DEADLINE_MS, type OpenedPage, openPage, shows } from './support/opened-page.ts';
import { screenTests } from './support/screen-tests.ts';
import { applyPlan, breakPart, headline, readPanel, repairPart } from './support/screens.ts';

const browser = await launchBrowser();

describe.skipIf(browser === undefined)('npm run demo -- --ui', () => {
  const ORDERS = 20;
  let demo: DemoProcess;
  let opened: OpenedPage;
  let port: number;
  let outputs: Outputs;

  beforeAll(async () => {
    port = await freePort();
    demo = await startDemo(port, ORDERS);
    outputs = await readOutputs(localFile(`outputs-${port}.json`));
    // The SDK clients of the seeds reach this engine; vitest runs each file in a process of its own.
    Object.assign(process.env, localEnvironment(`http://127.0.0.1:${port}`));
  });

  afterAll(async () => {
    await demo?.stop();
    await browser?.close();
    await rm(localFile(`outputs-${port}.json`), { force: true });
  });

  test('shows orders as they flow, a consumer that fails, its repair and a redrive by clicking, and a receipt without problems', async () => {
    expect(demo.output()).not.toContain('Placing');
    opened = await openPage(browser as Browser, demo.redirectFile);
    const { page } = opened;
    await shows(page.getByRole('region', { name: 'Newest events' }), 'OrderPlaced');

    await breakPart(page, 'bank-down');
    await headline(page, /broken/);
    await shows(page.getByRole('region', { name: 'What to do' }), /dead letters? in consumer:payments/);
    await repairPart(page, 'bank-down');

    // A message that is still retried may become a dead letter.
    const reader = createReader(outputs);
    await expect.poll(async () => (await reader.read('demo')).queued, { timeout: DEADLINE_MS }).toBe(0);
    await redriveAll(opened, 'consumer:payments', 'the bank is back');
    await opened.go('#/flow', 'Flow');
    const receipt = page.locator('.receipt');
    await receipt.waitFor();
    expect(await receipt.innerText()).toContain('Nothing lost, nothing doubled.');
    expect(await receipt.innerText()).toMatch(new RegExp(`orders placed +${ORDERS}\\b`));
    expect(demo.output()).toContain('Nothing lost, nothing doubled.');
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
    expect(await receipt.innerText()).toContain('Nothing lost, nothing doubled.');
    const [, placed] = /orders placed +(\d+)/.exec(await receipt.innerText()) ?? [];
    expect(Number(placed)).toBeLessThan(ORDERS);
    expect(deployed()).toBe(deployments);
    await opened.close();
  });

  describe('a screen of the page', () => {
    screenTests(() => ({
      browser: browser as Browser,
      endpoint: `http://127.0.0.1:${port}`,
      outputs,
    }));
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
