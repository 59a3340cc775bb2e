import type { Page } from 'playwright-core';
import { afterAll, describe, expect, onTestFailed, test } from 'vitest';
import { freePort } from '../../localstack/free-port.ts';
import { launchBrowser } from './support/chromium.ts';
import { type DemoProcess, startDemo } from './support/demo-process.ts';
import { DEMO_MS, openPage, shows } from './support/opened-page.ts';
import { breakPart, headline, repairPart } from './support/screens.ts';

const browser = await launchBrowser();

describe.skipIf(browser === undefined)('npm run demo -- --ui', () => {
  let demo: DemoProcess | undefined;
  let port = 0;

  afterAll(async () => {
    await demo?.stop();
    await browser?.close();
  });

  test('loses and doubles nothing after a rule was off, a queue purged and a worker killed, each repaired by clicking', async () => {
    if (browser === undefined) return;
    port = await freePort();
    demo = await startDemo(port);
    const { output } = demo;
    onTestFailed(() => console.error(output()));
    const { page, close } = await openPage(browser, demo.redirectFile, {}, DEMO_MS);

    await breakPart(page, 'worker-killed');
    // SQS redelivers the killed worker's message after its visibility timeout, which the repair waits for.
    await Promise.all([repairPart(page, 'worker-killed'), repairRuleAndQueue(page)]);

    await page.getByRole('button', { name: 'End the run' }).click();
    const receipt = page.locator('.receipt');
    await receipt.waitFor();
    expect(await receipt.innerText()).toContain('Nothing lost, nothing duplicated');
    await close();
    expect(await demo.stop()).toBe(0);
  });
});

async function repairRuleAndQueue(page: Page): Promise<void> {
  await breakPart(page, 'rule-off');
  await headline(page, /\d problem/);
  await shows(page.getByRole('region', { name: 'What to do' }), /inventory receives no events/);
  await repairPart(page, 'rule-off');
  await breakPart(page, 'queue-purged');
  await repairPart(page, 'queue-purged');
}
