import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { OrderSystem } from './order-system.ts';
import { type RunDeps, runScenario } from './runner.ts';
import type { Scenario } from './scenario.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const clear = vi.fn();
const system = {
  outputs: { TableName: 'table', BankTableName: 'bank' },
  proxy: { clear, inject: vi.fn() },
} as unknown as OrderSystem;

async function outcomeOf(run: Scenario['run'], more: Partial<Scenario> & Pick<RunDeps, 'settings'> = {}) {
  clear.mockClear();
  const lines: string[] = [];
  const ended = runScenario(
    { name: 'some', title: 'something fails', run, limitMs: more.limitMs },
    { system, print: (line) => lines.push(line), settings: more.settings },
  );
  await vi.runAllTimersAsync();
  return { ...(await ended), text: lines.join('\n') };
}

describe('a scenario', () => {
  it('passes when nothing was lost and nothing duplicated, and its faults are removed', async () => {
    const outcome = await outcomeOf(async (stage) => {
      stage.step('something happens');
      stage.check(true, 'it is so');
      return { lost: 0, duplicated: 0 };
    });
    expect(outcome).toMatchObject({ passed: true, lost: 0, duplicated: 0, problems: [] });
    expect(outcome.text).toMatch(/1\. \[ 0\.0 s\] something happens\n +yes {2}it is so\n.*passed/);
    expect(clear).toHaveBeenCalledOnce();
  });

  it.each([[{ lost: 1, duplicated: 0 }], [{ lost: 0, duplicated: 1 }]])(
    'fails when it counted %o',
    async (counts) => {
      expect(await outcomeOf(async () => counts)).toMatchObject({ passed: false, ...counts });
    },
  );

  it('fails when something was not so, and goes on to count', async () => {
    const outcome = await outcomeOf(async (stage) => {
      stage.check(false, 'it is so');
      return { lost: 0, duplicated: 0 };
    });
    expect(outcome).toMatchObject({ passed: false, lost: 0, problems: ['Not so: it is so'] });
  });

  it('that throws fails uncounted, and its faults are removed', async () => {
    const outcome = await outcomeOf(async () => {
      throw new Error('it broke');
    });
    expect(outcome).toMatchObject({ passed: false, lost: undefined, problems: ['it broke'] });
    expect(clear).toHaveBeenCalledOnce();
  });

  it('has the time that it requests', async () => {
    const outcome = await outcomeOf(() => new Promise(() => {}), { limitMs: 90_000 });
    expect(outcome).toMatchObject({ passed: false, seconds: 90, problems: ['It was not over after 90 s'] });
  });

  it('is told what the run was told', async () => {
    const settings = { spikeOrders: 7, seed: 8 };
    let told: unknown;
    await outcomeOf(
      async (stage) => {
        told = stage.settings;
        return { lost: 0, duplicated: 0 };
      },
      { settings },
    );
    expect(told).toEqual(settings);
  });

  it('that runs over its time fails, and cannot break anything afterwards', async () => {
    let breakLater = (): void => {};
    const outcome = await outcomeOf(async (stage) => {
      breakLater = () => stage.fault({}, async () => undefined);
      return new Promise(() => {});
    });
    expect(outcome).toMatchObject({ passed: false, problems: ['It was not over after 1200 s'] });
    expect(outcome.seconds).toBe(1_200);
    expect(breakLater).toThrow('time of the scenario is up');
    expect(system.proxy.inject).not.toHaveBeenCalled();
  });
});
