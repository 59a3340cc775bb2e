import { get as httpGet } from 'node:http';
import { createParser } from 'eventsource-parser';
import { expect, onTestFinished, test } from 'vitest';
import type { DemoState, LiveMessage } from '../../../../../cli/page/server/protocol.ts';
import type { DemoPanel } from '../../../../../cli/page/server/routes.ts';
import { RUN, runningUi } from '../../support/running-ui.ts';

const GENEROUS = { timeout: 60_000 };

/** A change that goes on until it is stopped. */
function runningPlans() {
  let run = RUN;
  const unused = () => {
    throw new Error('unused');
  };
  const stop = () => {
    run = { ...RUN, state: 'stopped' };
    return run;
  };
  return { make: unused, apply: unused, stop, runs: () => [run] };
}

/** Opens the live stream as a tab does. */
async function opened({ ui, withKey }: Awaited<ReturnType<typeof runningUi>>) {
  const messages: LiveMessage[] = [];
  const parser = createParser({ onEvent: ({ data }) => void messages.push(JSON.parse(data)) });
  const headers = await withKey();
  return await new Promise<{
    readonly messages: LiveMessage[];
    readonly type: string | undefined;
    close(): void;
    readonly ended: Promise<void>;
  }>((resolve) => {
    const request = httpGet(new URL('/api/live', ui.url), { headers, agent: false }, (response) => {
      const ended = new Promise<void>((done) => response.once('close', done));
      response.on('error', () => {});
      response.on('data', (chunk: Buffer) => parser.feed(chunk.toString('utf8')));
      resolve({ messages, type: response.headers['content-type'], close: () => request.destroy(), ended });
    });
    request.on('error', () => {});
    onTestFinished(() => void request.destroy());
  });
}

test('a tab receives the live messages while it is open, and is forgotten once it closes', async () => {
  const rig = await runningUi();
  const tab = await opened(rig);
  expect(tab.type).toBe('text/event-stream');
  await expect.poll(() => rig.listeners.size, GENEROUS).toBe(1);
  for (const send of rig.listeners) send({ kind: 'run', run: RUN });
  await expect.poll(() => tab.messages, GENEROUS).toEqual([{ kind: 'run', run: RUN }]);
  tab.close();
  await expect.poll(() => rig.listeners.size, GENEROUS).toBe(0);
});

test('the page is opened by its first tab, and not by its file or its key', async () => {
  const rig = await runningUi();
  let isOpened = false;
  void rig.ui.opened.then(() => {
    isOpened = true;
  });
  expect((await rig.get('/api/mailroom')).status).toBe(200);
  expect(isOpened).toBe(false);
  await opened(rig);
  await rig.ui.opened;
});

test('a slow tab receives the last of the messages that replace each other, and each run', async () => {
  const rig = await runningUi();
  const tab = await opened(rig);
  await expect.poll(() => rig.listeners.size, GENEROUS).toBe(1);
  const flows = Array.from({ length: 100 }, (_, at) => ({ kind: 'flow', flow: { at } }) as LiveMessage);
  for (const send of rig.listeners) {
    for (const flow of flows) send(flow);
    send({ kind: 'run', run: RUN });
    send({ kind: 'run', run: { ...RUN, id: 'run-2' } });
  }
  await expect.poll(() => tab.messages.at(-1), GENEROUS).toMatchObject({ run: { id: 'run-2' } });
  expect(tab.messages.filter(({ kind }) => kind === 'flow').at(-1)).toMatchObject({ flow: { at: 99 } });
  expect(tab.messages.length).toBeLessThan(10);
  expect(tab.messages.filter(({ kind }) => kind === 'run')).toHaveLength(2);
});

test('the stream ends with its listeners when the server stops', async () => {
  const rig = await runningUi();
  const tab = await opened(rig);
  await expect.poll(() => rig.listeners.size, GENEROUS).toBe(1);
  await rig.ui.stop();
  await tab.ended;
  await expect.poll(() => rig.listeners.size, GENEROUS).toBe(0);
});

test('a server that stops ends the changes that are being made first', async () => {
  const plans = runningPlans();
  const { ui } = await runningUi({ plans });
  await ui.stop();
  expect(plans.runs()).toEqual([{ ...RUN, state: 'stopped' }]);
});

test('an open stream keeps the server; without one it stops after the idle time', async () => {
  const plans = runningPlans();
  const rig = await runningUi({
    idleMs: 10,
    plans,
  });
  const tab = await opened(rig);
  await expect.poll(() => rig.listeners.size, GENEROUS).toBe(1);
  plans.stop(); // until here the run kept the server
  const first = await Promise.race([rig.ui.ended, rig.get('/api/mailroom').then(({ status }) => status)]);
  expect(first).toBe(200);
  tab.close();
  expect(await rig.ui.ended).toBe('idle');
  await expect(rig.send('/')).rejects.toThrow(/ECONNREFUSED/);
});

/** A panel with one fault. */
function panel(): DemoPanel & { readonly done: string[] } {
  const listeners = new Set<() => void>();
  const done: string[] = [];
  let state: DemoState['faults'][number]['state'] = 'whole';
  const change = async (name: string, to: typeof state) => {
    done.push(`${name} ${to}`);
    state = to;
    for (const listener of listeners) listener();
  };
  return {
    done,
    state: () => ({
      faults: [
        { name: 'rule-off', text: 'The rule is off', state, error: null, repair: 'aws events enable-rule' },
      ],
      ...{ phase: 'ordering', placed: 1, orders: 2, endsAt: null, receipt: null },
    }),
    endRun: () => void done.push('end'),
    startRun: () => void done.push('start'),
    break: (name) => change(name, 'broken'),
    repair: (name) => change(name, 'whole'),
    onChange: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

test('the faults of the demo are made and repaired; each tab sees it, and everything is read again', async () => {
  const demo = panel();
  const rig = await runningUi({ demo, allowsChanges: true });
  const tab = await opened(rig);
  const broken = { faults: [{ name: 'rule-off', state: 'broken' }] };
  expect((await rig.change('/api/demo/faults/rule-off/break')).json()).toMatchObject(broken);
  await expect.poll(() => tab.messages.at(-1), GENEROUS).toMatchObject({ kind: 'demo', demo: broken });
  await rig.change('/api/demo/faults/rule-off/repair');
  expect((await rig.change('/api/demo/faults/bank-down/break')).status).toBe(404);
  expect((await rig.change('/api/demo/end')).json()).toMatchObject({ phase: 'ordering' });
  expect((await rig.change('/api/demo/start')).status).toBe(200);
  expect(demo.done).toEqual(['rule-off broken', 'rule-off whole', 'end', 'start']);
  expect(rig.calls).toEqual([['refresh'], ['refresh']]);
});

test('a read-only page neither ends nor starts a run of the demo', async () => {
  const demo = panel();
  const { change } = await runningUi({ demo });
  for (const act of ['end', 'start'])
    expect((await change(`/api/demo/${act}`)).json()).toMatchObject({ code: 'READ_ONLY' });
  expect(demo.done).toEqual([]);
});

test('without the demo there is no panel', async () => {
  const { change } = await runningUi({ allowsChanges: true });
  expect((await change('/api/demo/end')).status).toBe(404);
  expect((await change('/api/demo/faults/rule-off/break')).status).toBe(404);
});
