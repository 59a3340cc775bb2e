import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { createParser } from 'eventsource-parser';
import { expect, inject, it, onTestFinished } from 'vitest';
import type { LiveMessage, MailroomInfo, Plan } from '../../../cli/page/server/protocol.ts';
import type { Reading } from '../../../cli/page/server/readings.ts';
import { eventually } from '../support/eventually.ts';
import { mailroom } from '../support/mailroom.ts';
import { eventsWith, only, placeOrder } from '../support/order-system.ts';

const LAUNCHER = fileURLToPath(new URL('../../../cli/bin/mailroom.js', import.meta.url));

/** Starts `mailroom ui --json` as a process, and exchanges its token for the key. */
async function startedUi(...options: readonly string[]) {
  const argv = [LAUNCHER, 'ui', '--json', '--endpoint', inject('endpoint'), ...options];
  const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let out = '';
  for await (const chunk of child.stdout) {
    out += chunk;
    if (out.includes('\n')) break;
  }
  const { url, redirectFile } = JSON.parse(out) as { readonly url: string; readonly redirectFile: string };
  const { origin } = new URL(url);
  const [, token = ''] = /#token=([\w-]+)/.exec(await readFile(redirectFile, 'utf8')) ?? [];
  const headers = { 'Content-Type': 'application/json', Origin: origin };
  const exchanged = await fetch(`${url}api/key`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ token }),
  });
  const { key } = (await exchanged.json()) as { readonly key: string };
  const withKey = { ...headers, Authorization: `Bearer ${key}` };
  return {
    child,
    url,
    redirectFile,
    get: (path: string) => fetch(`${url}${path}`, { headers: withKey }),
    post: (path: string, body: unknown) =>
      fetch(`${url}${path}`, { method: 'POST', headers: withKey, body: JSON.stringify(body) }),
    stop: async () => {
      const exited = once(child, 'exit');
      child.kill('SIGINT');
      const [code] = await exited;
      return code as number | null;
    },
  };
}

it('ui serves the page of the deployed Mailroom, reads as the command does, and stops with Ctrl-C', async () => {
  const { orderId } = await placeOrder();
  const { envelope } = only(await eventsWith(orderId), 'OrderPlaced');
  const ui = await startedUi();
  const page = await fetch(ui.url);
  expect(await page.text()).toContain('<script type="module" src="/page.js">');
  expect((await fetch(`${ui.url}page.js`)).headers.get('content-type')).toContain('javascript');

  const info = (await (await ui.get('api/mailroom')).json()) as MailroomInfo;
  expect(info).toMatchObject({
    stack: 'mailroom-local',
    region: 'us-east-1',
    isLocal: true,
    allowsChanges: false,
  });
  expect(info.consumers.map(({ name }) => name)).toContain('payments');

  await eventually(async () => {
    const why = (await (await ui.get(`api/readings/why?id=${envelope.eventId}`)).json()) as Reading;
    const { code, json } = await mailroom('why', envelope.eventId, '--json');
    expect([why.exitCode, code]).toEqual([0, 0]);
    expect(why.document).toEqual(json());
    expect(why.command).toMatch(/^npx cdk-mailroom why /);
  });
  const doctor = (await (await ui.get('api/readings/doctor')).json()) as Reading;
  expect(doctor.document).toMatchObject({ stack: 'mailroom-local' });

  expect(await ui.stop()).toBe(0);
  expect(existsSync(ui.redirectFile)).toBe(false);
});

it('ui streams the flow with the event that was just committed', async () => {
  const ui = await startedUi();
  const { body } = await ui.get('api/live');
  const messages: LiveMessage[] = [];
  const parser = createParser({ onEvent: ({ data }) => void messages.push(JSON.parse(data)) });
  const { orderId } = await placeOrder();
  const { envelope } = only(await eventsWith(orderId), 'OrderPlaced');
  const decoder = new TextDecoder();
  const isShown = () =>
    messages.some(
      (message) =>
        message.kind === 'flow' &&
        message.flow.status !== null &&
        message.flow.events.some(({ eventId }) => eventId === envelope.eventId),
    );
  for await (const chunk of body ?? []) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    if (isShown()) break;
  }
  expect(isShown()).toBe(true);
  // The page holds its stream open; Ctrl-C ends it all the same.
  expect(await ui.stop()).toBe(0);
});

it('ui --allow-changes plans with the command, and without it refuses to', async () => {
  const request = { kind: 'repair', since: '1h' };
  const reading = await startedUi();
  const refused = await reading.post('api/plans', request);
  expect([refused.status, await refused.json()]).toEqual([
    403,
    expect.objectContaining({ code: 'READ_ONLY' }),
  ]);
  const changing = await startedUi('--allow-changes');
  const plan = (await (await changing.post('api/plans', request)).json()) as Plan;
  expect(plan).toMatchObject({ kind: 'repair', command: expect.stringContaining('audit') });
  expect(await reading.stop()).toBe(0);
  expect(await changing.stop()).toBe(0);
});
