import type { Locator, Page } from 'playwright-core';
import type { DemoFault } from '../../../cli/page/server/protocol.ts';
import { type OpenedPage, shows } from './opened-page.ts';

/** The screens of the page. */
export const SCREENS = [
  'flow',
  'event',
  'dead-letters',
  'messages',
  'doctor',
  'audit',
  'operations',
] as const;
export type ScreenName = (typeof SCREENS)[number];

/** Goes to a screen, and lets it read what it shows on a click. */
export async function visit(opened: OpenedPage, screen: ScreenName, eventId: string): Promise<void> {
  const { page, go } = opened;
  switch (screen) {
    case 'flow':
      await go('#/flow', 'Flow');
      await headline(page, /\d problem/);
      return shows(page.getByRole('region', { name: 'Flow of events' }), 'order-status');
    case 'event':
      await go(`#/event/${eventId}`, 'OrderPlaced');
      return shows(page.locator('main'), 'Payload');
    case 'dead-letters':
      await go('#/dead-letters', 'Dead letters');
      await readSource(page, 'consumer:payments');
      return readSource(page, 'dead');
    case 'messages':
      await go('#/messages', 'Messages');
      return shows(page.locator('main'), /BankError/);
    case 'doctor':
      await go('#/doctor', 'Doctor');
      await page.getByRole('button', { name: /^Run / }).click();
      return shows(page.locator('main'), /\d+ relations? checked/);
    case 'audit':
      await go('#/audit', 'Audit');
      await page.getByRole('button', { name: /^Run / }).click();
      return shows(page.locator('main'), /\d+ published/);
    case 'operations':
      await go('#/operations', 'Operations log');
      return shows(page.locator('main'), 'it was a test order');
  }
}

/** Receives the dead letters of a source on the screen of the dead letters, of which there is at least one. */
export async function readSource(page: Page, source: string): Promise<void> {
  const panel = await readPanel(page, source);
  await panel.getByRole('table').waitFor();
}

/** Receives the dead letters of a source, and resolves when the panel shows what was received. @returns the panel */
export async function readPanel(page: Page, source: string): Promise<Locator> {
  const panel = page.getByRole('region', { name: source, exact: true });
  // The panel keeps the last result while it reads. The first response comes while the button is still disabled.
  const responded = page.waitForResponse((response) => response.url().includes('/api/readings/'));
  await panel.getByRole('button', { name: /^Read/ }).click();
  await responded;
  await panel.getByRole('button', { name: /^Read/, disabled: false }).waitFor();
  return panel;
}

/** Waits for the verdict at the top of the page. */
export async function headline(page: Page, text: RegExp): Promise<void> {
  await page.locator('.headline').filter({ hasText: text }).waitFor();
}

/** Types a reason and the confirmation that an open plan asks for, and applies it. */
export async function applyPlan(page: Page, reason: string): Promise<void> {
  const dialog = page.getByRole('dialog');
  const confirmation = await dialog.locator('form label code').innerText();
  await dialog.getByLabel(/^Reason/).fill(reason);
  await dialog.getByLabel(/^To confirm/).fill(confirmation);
  await dialog.getByRole('button', { name: 'Apply', exact: true }).click();
  await dialog.waitFor({ state: 'hidden' });
}

/** Makes a fault of the demo by clicking. */
export async function breakPart(page: Page, name: DemoFault['name']): Promise<void> {
  await faultOf(page, name)
    .getByRole('button', { name: /^Break/ })
    .click();
  await shows(faultOf(page, name), /^broken$/);
}

/** Repairs a fault of the demo by clicking, and waits until the part is healthy. */
export async function repairPart(page: Page, name: DemoFault['name']): Promise<void> {
  await faultOf(page, name)
    .getByRole('button', { name: /^Repair/ })
    .click();
  await shows(faultOf(page, name), 'healthy');
}

/** The part of the demo's panel for a fault. */
function faultOf(page: Page, name: DemoFault['name']): Locator {
  return page.locator(`[data-fault="${name}"]`);
}
