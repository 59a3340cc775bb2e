import { describe, expect, test } from 'vitest';
import { PROBES } from '../../account/attempts.ts';
import { denialsOf } from '../../account/denials.ts';
import type { ProbeOutcome } from '../../account/probe.handler.ts';

const { denied } = PROBES[2]?.attempts({
  table: 'table',
  bus: 'bus',
  outputs: {},
  queue: (consumer) => consumer,
  duplicate: '{}',
}) ?? { denied: [] };

/** Outcomes of these calls, of which one command is judged differently. */
const outcomes = (kind: ProbeOutcome['kind'], command?: string, other: ProbeOutcome['kind'] = kind) =>
  denied.map(({ call }) => ({ kind: call.command === command ? other : kind, error: 'why' }));

describe('the denials of a role', () => {
  test('have no hole if every forbidden call is denied', () => {
    for (const isLocal of [true, false])
      expect(denialsOf(denied, outcomes('denied'), isLocal)).toEqual({ holes: [] });
  });

  test('have a hole if one forbidden call is let through, also on a local engine', () => {
    for (const isLocal of [true, false]) {
      const found = denialsOf(denied, outcomes('denied', 'DeleteItem', 'allowed'), isLocal);
      expect(found).toEqual({ holes: ['delete an outbox row: allowed why'] });
    }
  });

  test('have a hole if an outcome is unknown or missing: a throttled call was not denied', () => {
    expect(denialsOf(denied, outcomes('denied', 'DeleteItem', 'unknown'), false).holes).toEqual([
      'delete an outbox row: unknown why',
    ]);
    expect(denialsOf(denied, outcomes('unknown'), true).holes).toHaveLength(denied.length);
    expect(denialsOf(denied, [], true).holes).toHaveLength(denied.length);
  });

  test('cannot be shown by an engine that lets every call through; an account that does is open', () => {
    expect(denialsOf(denied, outcomes('allowed'), true)).toEqual({
      holes: [],
      notShown: 'the engine enforces no IAM: it let all 5 forbidden calls through',
    });
    expect(denialsOf(denied, outcomes('allowed'), false).holes).toHaveLength(5);
  });
});
