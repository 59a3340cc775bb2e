import { afterAll, describe, inject, onTestFinished, test } from 'vitest';
import { placeOrder, settled } from '../local/support/order-system.ts';
import { launchBrowser } from './support/chromium.ts';
import { shows } from './support/opened-page.ts';
import { serveUi } from './support/ui-server.ts';

const browser = await launchBrowser();

describe.skipIf(browser === undefined)('the page of a deployed order system', () => {
  afterAll(() => browser?.close());

  test('shows the consumers and the events of an order, and the story of one of them', async () => {
    if (browser === undefined) return;
    const ui = await serveUi(inject('endpoint'), { allowsChanges: false, showsPayloads: false });
    onTestFinished(ui.stop);
    const { orderId } = await placeOrder();
    const { events } = await settled(orderId);
    const { page, go, close } = await ui.open(browser);
    await shows(page.getByRole('region', { name: 'Flow of events' }), 'order-status');
    await shows(page.getByRole('region', { name: 'Newest events' }), 'OrderPlaced');
    for (const { envelope } of events.slice(0, 1)) {
      await go(`#/event/${envelope.eventId}`, envelope.type);
      await shows(page.locator('main'), orderId);
    }
    await close();
  });
});
