import { expect, test, vi } from 'vitest';
import type { DemoFault } from '../../../cli/ui/protocol.ts';
import type { InjectedFault } from '../../../demo/injected-fault.ts';
import { createPanel } from '../../../demo/panel.ts';

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

/** A panel of faults that are made and repaired when the test says so. */
function aPanel() {
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
  const panel = createPanel({ orders: 3, faults, onError: (message) => errors.push(message) });
  const stateOf = (name: DemoFault['name']) =>
    panel.state().faults.find((fault) => fault.name === name)?.state;
  return { panel, calls, errors, gate, made, stateOf };
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

test('a repair that fails leaves the fault broken, and its error is reported', async () => {
  const { panel, errors, gate, made, stateOf } = aPanel();
  made.resolve();
  gate.reject(new Error('the engine is gone'));
  await panel.break('queue-purged');
  await panel.repair('queue-purged');
  await vi.waitFor(() => expect(stateOf('queue-purged')).toBe('broken'));
  expect(errors).toEqual(['The repair of queue-purged failed: the engine is gone']);
});

test('the page shows the placed orders and the receipt, and is called after each change', () => {
  const { panel } = aPanel();
  const seen: number[] = [];
  const forget = panel.onChange(() => seen.push(panel.state().placed));
  panel.placed();
  panel.end(['Nothing lost, nothing doubled.']);
  forget();
  panel.placed();
  expect(seen).toEqual([1, 1]);
  expect(panel.state()).toMatchObject({
    orders: 3,
    isOver: true,
    receipt: ['Nothing lost, nothing doubled.'],
  });
});

test('no fault is made once the run is over', async () => {
  const { panel, calls } = aPanel();
  panel.end([]);
  await expect(panel.break('bank-down')).rejects.toMatchObject({ code: 'DEMO_OVER' });
  expect(calls).toEqual([]);
});

test('an engine that the demo did not start has no faults to make', async () => {
  const panel = createPanel({ orders: 3, faults: undefined, onError: () => {} });
  expect(panel.state().faults).toEqual([]);
  await expect(panel.break('bank-down')).rejects.toMatchObject({ code: 'NOT_THIS_ENGINE' });
});
