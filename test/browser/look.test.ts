import { afterAll, describe, inject, onTestFinished, test } from 'vitest';
import { only, placeOrder, settled } from '../local/support/order-system.ts';
import { launchBrowser } from './support/chromium.ts';
import { shows } from './support/opened-page.ts';
import { serveUi } from './support/ui-server.ts';

const browser = await launchBrowser();

describe.skipIf(browser === undefined)('the page of a deployed order system', () => {
  afterAll(() => browser?.close());

  test('shows the consumers, and the story of an order', async () => {
    if (browser === undefined) return;
    const ui = await serveUi(inject('endpoint'), { allowsChanges: false, showsPayloads: false });
    onTestFinished(ui.stop);
    const { orderId } = await placeOrder();
    const { events } = await settled(orderId);
    const { page, go, close } = await ui.open(browser);
    await shows(page.getByRole('region', { name: 'Flow of events' }), 'order-status');
    const { envelope } = only(events, 'OrderPlaced');
    await go(`#/event/${envelope.eventId}`, 'OrderPlaced');
    await shows(page.locator('main'), orderId);
    await shows(page.locator('main'), 'processed');
    await close();
  });
});
