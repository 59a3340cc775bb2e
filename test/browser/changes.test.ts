import { randomUUID } from 'node:crypto';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import type { Deployment } from '../../cli/deployment/deployment.ts';
import { replacementOf } from '../../cli/deployment/resent-event.ts';
import { delivered, die, paymentCaptured, rejectedPayment } from '../local/support/dead-letters.ts';
import { eventually } from '../local/support/eventually.ts';
import {
  emails,
  eventsWith,
  message,
  only,
  placeOrder,
  rejection,
  shownOrder,
} from '../local/support/order-system.ts';
import { launchBrowser } from './support/chromium.ts';
import { type OpenedPage, shows } from './support/opened-page.ts';
import { applyPlan, readPanel } from './support/screens.ts';
import { serveUi } from './support/ui-server.ts';

const CONSUMER = 'notifications';
const SOURCE = `consumer:${CONSUMER}` as const;

const browser = await launchBrowser();

describe.skipIf(browser === undefined)('a change on the page', () => {
  afterAll(() => browser?.close());

  test('redrives twelve dead letters of a cause after Stop has ended a redrive before its first step', async () => {
    const cause = `${CONSUMER} ATTEMPTS_EXHAUSTED: MailError ${randomUUID()}`;
    const events = await Promise.all(Array.from({ length: 12 }, () => rejectedPayment(CONSUMER, cause)));
    // Stop has nothing to press in time otherwise: a local redrive takes a second.
    let held = Promise.resolve();
    const { page } = await tab((deployment) => ({
      ...deployment,
      operator: () => held.then(deployment.operator),
    }));

    await planRedrive(page, cause, 12);
    let release = (): void => {};
    held = new Promise<void>((resolve) => {
      release = resolve;
    });
    await applyPlan(page, 'the mail server is back');
    const run = page.locator('.run');
    const stopped = page.waitForResponse(/\/stop$/);
    await run.getByRole('button', { name: 'Stop' }).click();
    await stopped;
    release();
    await shows(run, /^stopped/);
    await run.getByRole('button', { name: 'Dismiss' }).click();
    for (const { envelope } of events)
      expect(await message(CONSUMER, envelope.eventId)).toMatchObject({ status: 'REJECTED' });

    await planRedrive(page, cause, 12);
    await applyPlan(page, 'the mail server is back');
    await shows(run, /^done/);
    for (const { envelope } of events) {
      await eventually(async () =>
        expect(await message(CONSUMER, envelope.eventId)).toMatchObject({ status: 'PROCESSED' }),
      );
      expect(await emails(envelope.aggregateId)).toHaveLength(1);
    }
  });

  test('rejects a message formally: the choice plans again, and its handler announces that the payment is rejected', async () => {
    const { orderId } = await placeOrder({ customerId: 'customer-unknown' });
    const eventId = await eventually(async () => {
      const { envelope } = only(await eventsWith(orderId), 'OrderPlaced');
      expect(await rejection('payments', envelope.eventId)).toMatchObject({ reason: 'POISON_MESSAGE' });
      return envelope.eventId;
    });
    const { page } = await tab();
    await page.evaluate(`location.hash = '#/dead-letters/consumer%3Apayments'`);
    const row = page.getByRole('row').filter({ hasText: 'the bank does not know the customer' });
    await expect
      .poll(async () => (await readPanel(page, 'consumer:payments')).locator(row).isVisible(), {
        interval: 1_000,
      })
      .toBe(true);
    const dialog = page.getByRole('dialog');
    await untilPlanned(page, dialog, () => row.getByRole('button', { name: 'Discard' }).click());
    await shows(dialog.getByRole('table'), 'discarded');
    await dialog.getByLabel('How').selectOption('reject');
    await shows(dialog.getByRole('table'), "The handler's rejected function commits its events.");
    await shows(dialog, / --reject --apply /);
    await applyPlan(page, 'the bank does not know the customer');
    const run = page.locator('.run');
    await shows(run, /^done/);
    await shows(run, '1 rejected');

    expect(await message('payments', eventId)).toMatchObject({ status: 'DISCARDED', commitId: 'rejected' });
    await eventually(async () =>
      expect(await shownOrder(orderId)).toMatchObject({ status: 'cancelled', payment: 'rejected' }),
    );
  });

  test('discards a message whose side effect may have happened once the box is ticked, which keeps the focus', async () => {
    const cause = `${CONSUMER} ATTEMPTS_EXHAUSTED: MailError ${randomUUID()}`;
    const startedAt = Date.now() - 60_000;
    const effects = {
      mail: {
        status: 'IN_PROGRESS',
        fence: 'of-the-last-attempt',
        run: 1,
        startedAt,
        endsBy: startedAt + 1_000,
      },
    } as const;
    const { envelope, id } = await rejectedPayment(CONSUMER, cause, effects);
    const opened = await tab();
    const { page } = opened;
    await opened.go(`#/dead-letters/${encodeURIComponent(SOURCE)}?id=${id}`, 'Dead letter');
    const dialog = page.getByRole('dialog');
    const box = dialog.getByLabel(/I have asked the providers/);
    await expect
      .poll(
        async () => {
          await page.getByRole('button', { name: 'Plan a discard' }).click();
          await box.or(dialog.getByRole('alert')).first().waitFor();
          const isPlanned = await box.isVisible();
          if (!isPlanned) await close(page, dialog);
          return isPlanned;
        },
        { interval: 1_000 },
      )
      .toBe(true);
    await shows(dialog, /effect mail started at/);
    await shows(dialog.getByRole('table'), 'effects to check');
    expect(await dialog.locator('form').count()).toBe(0);
    await box.press('Space');
    await dialog.locator('form').waitFor();
    expect(await page.evaluate('document.activeElement.type')).toBe('checkbox');
    await applyPlan(page, 'the mail was not sent');
    await shows(page.locator('.run'), /^done/);
    expect(await message(CONSUMER, envelope.eventId)).toMatchObject({ status: 'DISCARDED' });
  });

  test('sends an edited payload as a new event, which its consumer runs once', async () => {
    const envelope = await paymentCaptured();
    const data = envelope.data as object;
    const id = await die(SOURCE, delivered({ ...envelope, data: { ...data, amountCents: 'much' } }));
    const opened = await tab();
    const { page } = opened;
    await opened.go(`#/dead-letters/${encodeURIComponent(SOURCE)}?id=${id}`, 'Dead letter');
    const field = page.getByLabel('Data of the new event (JSON)');
    await readPayload(page, field);
    expect(await field.inputValue()).toContain('"much"');

    const plan = page.getByRole('button', { name: 'Plan a resend' });
    expect(await plan.isDisabled()).toBe(true);
    await field.fill('{');
    expect(await field.getAttribute('aria-invalid')).toBe('true');
    await field.fill(JSON.stringify({ ...data, amountCents: 1_350 }));
    await shows(page, '1 difference from the stored data.');
    const dialog = page.getByRole('dialog');
    await untilPlanned(page, dialog, () => plan.click());
    expect(await dialog.locator('form label code').innerText()).toBe(CONSUMER);
    await applyPlan(page, 'the amount was a word');
    const run = page.locator('.run');
    await shows(run, /^done/);

    await eventually(async () => expect(await emails(envelope.aggregateId)).toHaveLength(1));
    const row = await message(CONSUMER, envelope.eventId);
    const newEventId = row === undefined ? undefined : replacementOf(row);
    expect([row?.status, newEventId]).toEqual(['DISCARDED', expect.any(String)]);
    await opened.go(`#/event/${newEventId}`, 'PaymentCaptured');
    await shows(page.locator('main'), envelope.eventId);
    await opened.go('#/operations', 'Operations log');
    await shows(page.getByRole('main').getByRole('table'), 'the amount was a word');
  });
});

/** A tab that may change something. */
async function tab(change?: (deployment: Deployment) => Deployment): Promise<OpenedPage> {
  const allowed = { allowsChanges: true, showsPayloads: true };
  const server = await serveUi(inject('endpoint'), { ...allowed, ...(change && { change }) });
  const opened = await server.open(browser as Browser);
  onTestFinished(async () => {
    await opened.close();
    await server.stop();
  });
  return opened;
}

/** Opens the plan of a redrive of a cause's dead letters: of all, as soon as no other reader hides some of them. */
async function planRedrive(page: Page, cause: string, count: number): Promise<void> {
  await page.evaluate(`location.hash = '#/dead-letters/' + ${JSON.stringify(encodeURIComponent(SOURCE))}`);
  const row = page.getByRole('row').filter({ hasText: cause });
  await expect
    .poll(
      async () => {
        const panel = await readPanel(page, SOURCE);
        const isListed = await panel.getByRole('row').filter({ hasText: cause }).isVisible();
        if (!isListed) return 0;
        await row.getByRole('button', { name: 'Redrive' }).click();
        const dialog = page.getByRole('dialog');
        await dialog.getByRole('table').or(dialog.getByRole('alert')).first().waitFor();
        const confirmation = dialog.locator('form label code');
        const planned = (await confirmation.isVisible()) ? Number(await confirmation.innerText()) : 0;
        if (planned !== count) await close(page, dialog);
        return planned;
      },
      { interval: 1_000 },
    )
    .toBe(count);
}

/** Reads a dead letter with its payload: another reader may hide it for a moment. */
async function readPayload(page: Page, field: Locator): Promise<void> {
  const read = page.getByRole('button', { name: 'Read with payload', disabled: false });
  await expect
    .poll(
      async () => {
        const responded = page.waitForResponse((response) => response.url().includes('/api/readings/'));
        await read.click();
        await responded;
        await read.waitFor();
        return await field.isVisible();
      },
      { interval: 1_000 },
    )
    .toBe(true);
}

/** Plans again until the plan can be applied: another reader may hide the dead letter for a moment. */
async function untilPlanned(page: Page, dialog: Locator, plan: () => Promise<void>): Promise<void> {
  await expect
    .poll(
      async () => {
        await plan();
        await dialog.locator('form').or(dialog.getByRole('alert')).first().waitFor();
        const isPlanned = await dialog.locator('form').isVisible();
        if (!isPlanned) await close(page, dialog);
        return isPlanned;
      },
      { interval: 1_000 },
    )
    .toBe(true);
}

async function close(page: Page, dialog: Locator): Promise<void> {
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });
}
