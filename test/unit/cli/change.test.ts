import { expect, test } from 'vitest';
import { type OperatorChange, run } from '../../../cli/changes/change.ts';
import type { Deployment } from '../../../cli/deployment/deployment.ts';
import type { ChangeOptions } from '../../../cli/terminal/change.ts';
import { EXIT } from '../../../cli/terminal/io.ts';

const deployment = {} as Deployment;

/** A change that logs its calls. @param failure - thrown when it is made */
function loggedChange(failure?: Error) {
  const calls: string[] = [];
  const change: OperatorChange<ChangeOptions, { name: string }, string, { applied: boolean }> = {
    plan: async (_deployment, _options, planned) => {
      calls.push(`plan ${planned?.size ?? 'all'}`);
      return { name: 'a\u001b[2Jb' };
    },
    apply: async (_deployment, _plan, { reason }) => {
      calls.push(`apply: ${reason}`);
      if (failure !== undefined) throw failure;
      return 'made';
    },
    result: (_deployment, { made }) => ({ json: { applied: made !== undefined }, exitCode: EXIT.attention }),
    text: (_deployment, { plan, made = 'planned' }) => `${plan.name} ${made}`,
    release: async () => {
      calls.push('release');
    },
  };
  return { change, calls };
}

test('a change without --apply is planned, released and not made', async () => {
  const { change, calls } = loggedChange();
  const { json, exitCode } = await run(change, deployment, { reason: 'the bank is back' });
  expect(calls).toEqual(['plan all', 'release']);
  expect({ json, exitCode }).toEqual({ json: { applied: false }, exitCode: EXIT.attention });
});

test('a change with --apply is made after its plan, bound to the one that was confirmed, and its text is escaped', async () => {
  const { change, calls } = loggedChange();
  const options = { apply: true, reason: 'the bank is back' };
  const report = await run(change, deployment, options, new Map([['letter', 'runs']]));
  expect(calls).toEqual(['plan 1', 'apply: the bank is back', 'release']);
  expect(report.json).toEqual({ applied: true });
  expect(report.text()).toBe('a\\u001b[2Jb made');
});

test('a change without a reason is not even planned', async () => {
  const { change, calls } = loggedChange();
  await expect(run(change, deployment, { apply: true })).rejects.toMatchObject({ code: 'BAD_ARGUMENT' });
  expect(calls).toEqual([]);
});

test('a change that fails releases what its plan has hidden', async () => {
  const { change, calls } = loggedChange(new Error('no answer'));
  await expect(run(change, deployment, { apply: true, reason: 'the bank is back' })).rejects.toThrow();
  expect(calls).toEqual(['plan all', 'apply: the bank is back', 'release']);
});
