import { describe, expect, test } from 'vitest';
import { shownOutcome } from '../../../../../cli/page/client/plans/runs.ts';
import { commandOf, missingFrom } from '../../../../../cli/page/client/plans/use-plan.ts';
import { hasUnchecked, planGroups } from '../../../../../cli/page/client/plans/verdicts.ts';
import type { PlanDocument } from '../../../../../cli/page/server/protocol.ts';

/** A plan whose document has only the members that are shown. */
const planOf = (kind: PlanDocument['kind'], document: object) => ({ kind, document }) as PlanDocument;

const letter = (id: string, about: object = {}) => ({ id, code: null, message: null, ...about });

describe('a plan by verdict', () => {
  test('of a redrive counts each verdict, in the order of the command, with the errors of the deployed code', () => {
    const deadLetters = [
      letter('a', { verdict: 'fails', code: 'INVALID_PAYLOAD', message: 'at total' }),
      letter('b', { verdict: 'fails', code: 'INVALID_PAYLOAD', message: 'at id' }),
      letter('c', { verdict: 'fails', code: 'INVALID_PAYLOAD', message: 'at id' }),
      letter('d', { verdict: 'runs' }),
    ];
    const plan = planOf('redrive', { deadLetters });
    const groups = planGroups(plan);
    expect(groups.map(({ label, count }) => [label, count])).toEqual([
      ['would run', 1],
      ['would fail', 3],
    ]);
    expect(groups[1]?.reasons).toEqual([
      ['INVALID_PAYLOAD: at id', 2],
      ['INVALID_PAYLOAD: at total', 1],
    ]);
    expect(planGroups(plan, ['d']).map(({ label }) => label)).toEqual(['would run']);
  });

  test('of a discard has its own words for what is discarded', () => {
    const deadLetters = [letter('a', { outcome: 'busy' }), letter('b', { outcome: 'discard' })];
    expect(planGroups(planOf('discard', { deadLetters })).map(({ label }) => label)).toEqual([
      'busy',
      'discarded',
    ]);
  });

  test('of DEAD events and stream batches says what happens to them: no consumer runs them', () => {
    const words = (source: string) => [
      planGroups(planOf('redrive', { source, deadLetters: [letter('a', { verdict: 'runs' })] }))[0]?.label,
      planGroups(planOf('discard', { source, deadLetters: [letter('a', { outcome: 'discard' })] }))[0]?.todo,
      shownOutcome('processed', source).label,
      shownOutcome('discarded', source).todo,
    ];
    const absorbed = 'Never runs again. A later delivery is absorbed.';
    expect(words('dead')).toEqual(['would publish', 'Never published.', 'published', 'Never published.']);
    expect(words('consumer:payments')).toEqual(['would run', absorbed, 'processed', absorbed]);
    expect(words('stream')).toEqual([
      'would sweep',
      'Its dead letter is deleted. The sweep still publishes its events.',
      'swept',
      'Its dead letter is deleted. The sweep still publishes its events.',
    ]);
  });

  test('of a rejection says what is rejected, and why a dead letter stays', () => {
    const deadLetters = [
      letter('a', { outcome: 'not-rejectable', message: 'The deployed handler has no rejected function.' }),
      letter('b', { outcome: 'effects-unchecked' }),
      letter('c', { outcome: 'row-deleted' }),
      letter('d', { outcome: 'reject' }),
    ];
    const plan = planOf('discard', { deadLetters });
    const groups = planGroups(plan);
    expect(groups.map(({ label, reasons }) => [label, reasons])).toEqual([
      ['row deleted', []],
      ['rejected', []],
      ['not rejectable', [['The deployed handler has no rejected function.', 1]]],
      ['effects to check', []],
    ]);
    // The words of a discard, not those of a redrive, which has no box to tick.
    expect(groups[0]?.todo).toContain('confirm that they are checked');
  });

  test('of a discard has side effects to check while dead letters stay for them', () => {
    const having = (...outcomes: readonly string[]) =>
      hasUnchecked(planOf('discard', { deadLetters: outcomes.map((outcome) => letter('a', { outcome })) }));
    expect(having('discard', 'effects-unchecked')).toBe(true);
    expect(having('row-deleted')).toBe(true);
    expect(having('discard', 'reject', 'busy')).toBe(false);
    expect(hasUnchecked(planOf('redrive', { deadLetters: [letter('a', { verdict: 'row-deleted' })] }))).toBe(
      false,
    );
  });

  test('of a repair names the consumers, and why an event cannot be sent', () => {
    const event = (eventId: string, consumer: string, why: string | null = null) => ({
      ...{ eventId, consumer, why },
      outcome: why === null ? 'send' : 'unsent',
    });
    const events = [event('1', 'payments'), event('2', 'inventory'), event('3', 'payments', 'expired')];
    const groups = planGroups(planOf('repair', { repair: { events } }));
    expect(groups.map(({ label, reasons }) => [label, reasons])).toEqual([
      ['sent to payments', []],
      ['sent to inventory', []],
      ['not sent', [['expired', 1]]],
    ]);
    expect(planGroups(planOf('repair', { repair: null }))).toEqual([]);
  });

  test('of a resend is one event, which is sent or not', () => {
    const document = { consumer: 'payments', verdict: 'runs', code: null, message: null };
    expect(planGroups(planOf('resend', document))).toMatchObject([
      { label: 'would run', count: 1, todo: 'Sent to payments only, as a new event.' },
    ]);
    const refused = { ...document, verdict: 'fails', code: 'INVALID_PAYLOAD', message: 'at total' };
    expect(planGroups(planOf('resend', refused))).toMatchObject([
      { label: 'would fail', todo: 'Not sent.', reasons: [['INVALID_PAYLOAD: at total', 1]] },
    ]);
  });
});

test('a plan can be applied once a reason is written and the confirmation typed', () => {
  expect(missingFrom({ reason: '', typed: '' }, '12')).toEqual(['Write a reason.', 'Type 12 to confirm.']);
  expect(missingFrom({ reason: ' a ', typed: '1' }, '12')).toHaveLength(2);
  expect(missingFrom({ reason: 'the bank is back', typed: ' 12 ' }, '12')).toEqual([]);
  expect(missingFrom({ reason: 'the bank is back', typed: 'Mailroom' }, 'mailroom')).toHaveLength(1);
});

describe('the command of a read-only page', () => {
  const plan = 'npx cdk-mailroom dlq redrive consumer:payments --stage dev';

  test('applies the plan that was read', () => {
    expect(commandOf(plan, { kind: 'redrive', source: 'consumer:payments' })).toBe(
      `${plan} --apply --reason "…"`,
    );
  });

  test('names the ids that no cause selects, but none that would need quotes', () => {
    const ids = ['5f0a1a0c-6a2e', 'x; rm -rf /', '$& 7'];
    const request = { kind: 'redrive', source: 'consumer:payments', ids } as const;
    expect(commandOf(plan, request)).toBe(
      'npx cdk-mailroom dlq redrive consumer:payments 5f0a1a0c-6a2e --stage dev --apply --reason "…"',
    );
  });

  test('never selects all where it cannot name the wanted ones', () => {
    const request = { kind: 'redrive', source: 'consumer:payments', ids: ['a b', 'c d'] } as const;
    expect(commandOf(plan, request)).toBe(plan);
  });
});
