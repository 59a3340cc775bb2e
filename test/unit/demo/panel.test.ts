import { expect, test, vi } from 'vitest';
import type { DemoFault } from '../../../cli/page/server/protocol.ts';
import type { InjectedFault } from '../../../demo/made-faults.ts';
import { createPanel } from '../../../demo/panel.ts';
import { RECEIPT } from '../../support/demo-receipt.ts';

const NAMES: readonly DemoFault['name'][] = ['bank-down', 'rule-off', 'queue-purged', 'worker-killed'];

/** A promise that the test settles. */
function later() {
  let resolve = (): void => {};
  let reject = (_error: Error): void => {};
  const promise = new Promise<void>((onDone, onError) => {
    [resolve, reject] = [onDone, onError];
  });
  promise.catch(() => {}); // a test may settle it before it is awaited
  return { promise, resolve, reject };
}

/** A panel of faults that are made and repaired when the test says so, in a run. */
function aPanel(options: { readonly orders?: number; readonly maxMs?: number } = { orders: 3 }) {
  const calls: string[] = [];
  const gate = later();
  const made = later();
  const faultOf = (name: string): InjectedFault => ({
    text: `${name} is broken.`,
    repairCommand: () => `repair ${name}`,
    break: async () => {
      calls.push(`break ${name}`);
      await made.promise;
    },
    repair: async () => {
      calls.push(`repair ${name}`);
      await gate.promise;
    },
  });
  const faults = Object.fromEntries(NAMES.map((name) => [name, faultOf(name)])) as Record<
    DemoFault['name'],
    InjectedFault
  >;
  const errors: string[] = [];
  const onError = (message: string) => void errors.push(message);
  const panel = createPanel({ orders: options.orders, maxMs: options.maxMs ?? 60_000, faults, onError });
  const stateOf = (name: DemoFault['name']) =>
    panel.state().faults.find((fault) => fault.name === name)?.state;
  const errorOf = (name: DemoFault['name']) =>
    panel.state().faults.find((fault) => fault.name === name)?.error;
  panel.startRun();
  return { panel, calls, errors, gate, made, stateOf, errorOf };
}

test('a fault is broken at once, repairing while its command runs, then whole', async () => {
  const { panel, calls, gate, made, stateOf } = aPanel();
  expect(panel.faults()).toBe('none');
  await panel.break('rule-off');
  expect(stateOf('rule-off')).toBe('broken');
  await panel.repair('rule-off');
  expect(stateOf('rule-off')).toBe('repairing');
  expect(panel.faults()).toBe('broken');
  expect(calls, 'a repair waits until the fault is made').toEqual(['break rule-off']);
  made.resolve();
  gate.resolve();
  await vi.waitFor(() => expect(stateOf('rule-off')).toBe('whole'));
  expect(calls).toEqual(['break rule-off', 'repair rule-off']);
  expect(panel.faults()).toBe('repaired');
});

test('a fault that is made is not made twice, and one that is whole is not repaired', async () => {
  const { panel, calls } = aPanel();
  await panel.repair('bank-down');
  await panel.break('bank-down');
  await panel.break('bank-down');
  expect(calls).toEqual(['break bank-down']);
});

test('a fault that cannot be made works, and the page shows its error until the next try', async () => {
  const { panel, errors, made, stateOf, errorOf } = aPanel();
  made.reject(new Error('the bank did not charge'));
  await panel.break('worker-killed');
  await vi.waitFor(() => expect(stateOf('worker-killed')).toBe('whole'));
  expect(errorOf('worker-killed')).toContain('the bank did not charge');
  expect(errorOf('bank-down')).toBeNull();
  expect(errors).toHaveLength(1);
  await panel.break('worker-killed');
  expect(errorOf('worker-killed')).toBeNull();
});

test('a repair that fails leaves the fault broken, and its error is reported and shown', async () => {
  const { panel, errors, gate, made, stateOf, errorOf } = aPanel();
  made.resolve();
  gate.reject(new Error('the engine is gone'));
  await panel.break('queue-purged');
  await panel.repair('queue-purged');
  await vi.waitFor(() => expect(stateOf('queue-purged')).toBe('broken'));
  expect(errorOf('queue-purged')).toContain('the engine is gone');
  expect(errors).toHaveLength(1);
});

test('the page shows the placed orders and the receipt, and is called after each change', () => {
  const { panel } = aPanel();
  const seen: number[] = [];
  const forget = panel.onChange(() => seen.push(panel.state().placed));
  panel.placed();
  panel.settling();
  panel.finish(RECEIPT);
  forget();
  panel.placed();
  expect(seen).toEqual([1, 1, 1]);
  expect(panel.state()).toMatchObject({
    orders: 3,
    endsAt: null,
    phase: 'over',
    receipt: RECEIPT,
  });
});

test('no fault is made once no more orders are placed', async () => {
  const { panel, calls } = aPanel();
  panel.settling();
  await expect(panel.break('bank-down')).rejects.toMatchObject({ code: 'DEMO_OVER' });
  panel.finish(RECEIPT);
  await expect(panel.break('bank-down')).rejects.toMatchObject({ code: 'DEMO_OVER' });
  expect(calls).toEqual([]);
});

test('a run without a number of orders ends when it is told to, or after its longest time', async () => {
  const { panel } = aPanel({ maxMs: 60_000 });
  expect(panel.state()).toMatchObject({ phase: 'ordering', orders: null, endsAt: expect.any(Number) });
  const ends = await panel.nextRun();
  expect(ends.aborted).toBe(false);
  panel.endRun();
  expect(ends.aborted).toBe(true);

  const timed = await aPanel({ maxMs: 1 }).panel.nextRun();
  await vi.waitFor(() => expect(timed.aborted).toBe(true));
});

test('a new run starts only after the one before, with no fault and no order', async () => {
  const { panel, gate, made, stateOf } = aPanel();
  const first = await panel.nextRun();
  panel.placed();
  made.resolve();
  gate.resolve();
  await panel.break('rule-off');
  await panel.repair('rule-off');
  await vi.waitFor(() => expect(stateOf('rule-off')).toBe('whole'));
  panel.startRun();
  expect(panel.state().placed).toBe(1);
  panel.endRun();
  panel.settling();
  panel.startRun();
  expect(panel.state().phase).toBe('settling');
  panel.finish(RECEIPT);
  const next = panel.nextRun();
  panel.startRun();
  expect(panel.state()).toMatchObject({ phase: 'ordering', placed: 0, receipt: null });
  expect(panel.faults()).toBe('none');
  const second = await next;
  expect([first.aborted, second.aborted]).toEqual([true, false]);
});

test('an engine that the demo did not start has no faults to make', async () => {
  const panel = createPanel({ orders: 3, maxMs: 0, faults: undefined, onError: () => {} });
  expect(panel.state().faults).toEqual([]);
  await expect(panel.break('bank-down')).rejects.toMatchObject({ code: 'NOT_THIS_ENGINE' });
});
