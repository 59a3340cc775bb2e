import { describe, expect, test } from 'vitest';
import { withRun } from '../../../../../cli/page/client/frame/mailroom.ts';
import {
  causesOf,
  nextOf,
  outcomeCounts,
  resultsOf,
  shownOutcome,
} from '../../../../../cli/page/client/plans/runs.ts';
import type { Run } from '../../../../../cli/page/server/protocol.ts';

describe('the runs that the page shows', () => {
  const run = (id: string, startedAt: number, state: Run['state'] = 'running') =>
    ({ id, startedAt, state }) as Run;
  const shown = (...states: readonly Run[]) =>
    states.reduce<readonly Run[]>(withRun, []).map(({ id, state }) => `${id} ${state}`);

  test('are the latest state of each, the newest first', () => {
    expect(shown(run('a', 1), run('b', 2), run('a', 1, 'done'))).toEqual(['b running', 'a done']);
  });

  test('stay over when a response that was sent earlier arrives later', () => {
    expect(shown(run('a', 1), run('a', 1, 'stopped'), run('a', 1))).toEqual(['a stopped']);
  });
});

describe('the results of a run', () => {
  test('are those of the dead letters, with the error of one that failed again', () => {
    const results = resultsOf({
      deadLetters: [
        { id: 'a', eventId: 'e-a', outcome: 'processed', message: null, failedAgain: null },
        { id: 'b', eventId: null, outcome: 'failed-again', message: null, failedAgain: 'payments Bank: #' },
        { id: 'c', eventId: null, outcome: 'changed', message: 'It was runs in the plan and is busy now.' },
        { id: 'd', eventId: null, outcome: 'processed' },
      ],
    });
    expect(results.map(({ detail }) => detail)).toEqual([
      null,
      'payments Bank: #',
      'It was runs in the plan and is busy now.',
      null,
    ]);
    expect(outcomeCounts(results)).toEqual([
      ['failed-again', 1],
      ['changed', 1],
      ['processed', 2],
    ]);
  });

  test('of a redrive have a table by cause, unless all of one cause were processed', () => {
    const processed = { outcome: 'processed', fingerprint: 'Bank: #', count: 3, example: 'e-1' };
    const again = { ...processed, outcome: 'failed-again', failedAgain: 'Customer: #', count: 1 };
    const untried = { ...processed, outcome: 'untried', fingerprint: 'Tax: #', notTried: 'failed-again' };
    expect(causesOf({ causes: [processed] })).toEqual([]);
    expect(causesOf({ causes: [processed, again, untried] })).toEqual([
      { count: 3, outcome: 'processed', cause: 'Bank: #', now: '', example: 'e-1' },
      { count: 1, outcome: 'failed-again', cause: 'Bank: #', now: 'Customer: #', example: 'e-1' },
      {
        ...{ count: 3, outcome: 'untried', cause: 'Tax: #', example: 'e-1' },
        now: 'Its cause failed again, so it is not fixed',
      },
    ]);
    expect(causesOf({ deadLetters: [] })).toEqual([]);
    expect(causesOf(null)).toEqual([]);
  });

  test('of a repair are its events, each with its consumer', () => {
    const events = [
      { eventId: 'e-1', consumer: 'payments', outcome: 'unsent', why: 'its outbox row has expired' },
    ];
    expect(resultsOf({ deadLetters: 0, repair: { events } })).toEqual([
      { id: 'e-1 payments', eventId: 'e-1', outcome: 'unsent', detail: 'its outbox row has expired' },
    ]);
  });

  test('of a resend is its new event, with the command that comes next', () => {
    const document = {
      id: 'd',
      eventId: 'e-1',
      newEventId: 'e-2',
      outcome: 'processed',
      next: 'dlq discard',
    };
    expect(resultsOf(document)).toEqual([{ id: 'e-2', eventId: 'e-2', outcome: 'processed', detail: null }]);
    expect(nextOf(document)).toBe('dlq discard');
    expect(nextOf(null)).toBeNull();
  });

  test('of a rejection say what was rejected, and why a dead letter stays', () => {
    const deadLetters = [
      { id: 'a', eventId: 'e-a', outcome: 'rejected' },
      { id: 'b', eventId: 'e-b', outcome: 'not-rejectable', message: 'HANDLER_FAILED: the ledger is closed' },
      { id: 'c', eventId: 'e-c', outcome: 'row-deleted' },
      { id: 'd', eventId: 'e-d', outcome: 'effects-unchecked' },
    ];
    const results = resultsOf({ deadLetters });
    expect(results[1]?.detail).toBe('HANDLER_FAILED: the ledger is closed');
    expect(outcomeCounts(results).map(([outcome]) => shownOutcome(outcome).label)).toEqual([
      'row deleted',
      'not rejectable',
      'effects to check',
      'rejected',
    ]);
  });

  test('are empty without a document, and keep an outcome that this page does not know', () => {
    expect(resultsOf(null)).toEqual([]);
    expect(resultsOf({ error: { code: 'X', message: '' } })).toEqual([]);
    expect(shownOutcome('parked')).toEqual({ is: 'look', label: 'parked', todo: '' });
  });
});
