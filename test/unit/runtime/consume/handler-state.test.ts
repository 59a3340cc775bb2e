import { expect, test } from 'vitest';
import {
  afterStep,
  type HandlerState,
  type HandlerStep,
  NOT_STARTED,
} from '../../../../lambdas/runtime/consume/leased-context.ts';
import { EffectInProgress } from '../../../../lambdas/runtime/inbox/inbox-effect.ts';

const first = new Error('first');
const second = new Error('second');
const inProgress = new EffectInProgress('charge', 1_000);

const CASES: readonly [what: string, steps: readonly HandlerStep[], changed: Partial<HandlerState>][] = [
  ['a run that took no step has done nothing', [], {}],
  ['a call to the table is waited for', [{ is: 'table-called' }], { waiting: 1 }],
  ['a call that was answered is not waited for', [{ is: 'table-called' }, { is: 'table-answered' }], {}],
  [
    'of two calls, one answer leaves one',
    [{ is: 'table-called' }, { is: 'table-called' }, { is: 'table-answered' }],
    { waiting: 1 },
  ],
  ['a commit that has begun is running', [{ is: 'commit-begun' }], { commit: { kind: 'running' } }],
  ['a commit that was refused leaves none', [{ is: 'commit-begun' }, { is: 'commit-refused' }], {}],
  [
    'a refused commit may be followed by one that is written',
    [{ is: 'commit-begun' }, { is: 'commit-refused' }, { is: 'commit-begun' }, { is: 'committed' }],
    { commit: { kind: 'done' } },
  ],
  [
    'a commit whose response was lost keeps its error',
    [{ is: 'commit-begun' }, { is: 'commit-unknown', error: first }],
    { commit: { kind: 'unknown', error: first } },
  ],
  [
    'an effect that may run elsewhere blocks the run',
    [{ is: 'blocked', error: inProgress }],
    { blocked: inProgress },
  ],
  [
    'the last of two outages is kept',
    [
      { is: 'outage', error: first },
      { is: 'outage', error: second },
    ],
    { outage: { error: second } },
  ],
  [
    'a handler that lost its time to the table was cut off so',
    [{ is: 'cut-off', lostTimeToTable: true }],
    { cutOff: { lostTimeToTable: true } },
  ],
  [
    'a handler that used its time itself was cut off so',
    [{ is: 'cut-off', lostTimeToTable: false }],
    { cutOff: { lostTimeToTable: false } },
  ],
  [
    'the end keeps everything that has happened',
    [
      { is: 'table-called' },
      { is: 'commit-begun' },
      { is: 'blocked', error: inProgress },
      { is: 'outage', error: first },
      { is: 'cut-off', lostTimeToTable: true },
      { is: 'ended' },
    ],
    {
      commit: { kind: 'running' },
      blocked: inProgress,
      outage: { error: first },
      waiting: 1,
      cutOff: { lostTimeToTable: true },
      ended: true,
    },
  ],
];

test.each(CASES)('%s', (_what, steps, changed) => {
  expect(steps.reduce(afterStep, NOT_STARTED)).toEqual({ ...NOT_STARTED, ...changed });
});

test('a step leaves the state before it unchanged', () => {
  const before = Object.freeze({ ...NOT_STARTED });
  expect(afterStep(before, { is: 'ended' })).not.toBe(before);
  expect(before).toEqual(NOT_STARTED);
});
