import { describe, expect, test } from 'vitest';
import {
  causesOf,
  choiceOf,
  type ReadDeadLetter,
  totalOf,
} from '../../../../../cli/page/client/dead-letters/sources.ts';

function deadLetter(id: string, about: Partial<ReadDeadLetter> = {}): ReadDeadLetter {
  const times = { sentAt: 1_000, expiresAt: 9_000 };
  return {
    id,
    eventId: null,
    type: null,
    fingerprint: null,
    lastError: null,
    neverClaimed: false,
    effects: [],
    ...times,
    ...about,
  };
}

describe('the causes of dead letters', () => {
  test('are in order of their counts, each with its oldest, its first expiry and its verdicts', () => {
    const groups = causesOf([
      deadLetter('a', { fingerprint: 'payments Bad: #', sentAt: 3_000, expiresAt: 7_000, verdict: 'fails' }),
      deadLetter('b', { fingerprint: 'payments Bank: #', sentAt: 5_000, expiresAt: null, verdict: 'runs' }),
      deadLetter('c', { fingerprint: 'payments Bank: #', sentAt: 2_000, expiresAt: 8_000, verdict: 'busy' }),
      deadLetter('d', { fingerprint: 'payments Bank: #', sentAt: null, expiresAt: 6_000, verdict: 'runs' }),
    ]);
    expect(groups.map(({ fingerprint }) => fingerprint)).toEqual(['payments Bank: #', 'payments Bad: #']);
    expect(groups[0]).toMatchObject({ oldestAt: 2_000, firstExpiryAt: 6_000 });
    expect(groups[0]?.deadLetters.map(({ id }) => id)).toEqual(['d', 'c', 'b']);
    expect(groups[0]?.verdicts).toEqual(
      new Map([
        ['runs', 2],
        ['busy', 1],
      ]),
    );
  });

  test('have no first expiry where nothing expires, and no verdicts where nothing was judged', () => {
    const [group] = causesOf([deadLetter('a', { expiresAt: null }), deadLetter('b', { expiresAt: null })]);
    expect(group).toMatchObject({ fingerprint: null, firstExpiryAt: null });
    expect(group?.verdicts.size).toBe(0);
  });

  test('name each earlier number for which their messages are out of order once', () => {
    const about = { fingerprint: 'ledger OUT_OF_ORDER: #', code: 'OUT_OF_ORDER' };
    const blocked = {
      ...about,
      verdict: 'out-of-order' as const,
      message: 'Number 4 is Booked b, which is DEAD.',
    };
    const [group] = causesOf([
      deadLetter('a', blocked),
      deadLetter('b', blocked),
      deadLetter('c', { ...about, verdict: 'fails', message: 'at total' }),
    ]);
    expect(group?.waitsFor).toEqual(['Number 4 is Booked b, which is DEAD.']);
  });

  test('are chosen by cause only where the command would choose no other', () => {
    const groups = causesOf([
      deadLetter('a', { fingerprint: 'payments Bank: #' }),
      deadLetter('b', { fingerprint: 'payments BANK: # of #' }),
      deadLetter('c'),
    ]);
    const choices = new Map(groups.map((group) => [group.fingerprint, choiceOf(group, groups)]));
    expect(choices.get('payments Bank: #')).toEqual({ ids: ['a'] });
    expect(choices.get('payments BANK: # of #')).toEqual({ cause: 'payments BANK: # of #' });
    expect(choices.get(null)).toEqual({ ids: ['c'] });
  });

  test('of 10,000 dead letters are counted completely', () => {
    const many = Array.from({ length: 10_000 }, (_, index) =>
      deadLetter(`id-${index}`, { fingerprint: `cause ${index % 3}` }),
    );
    expect(causesOf(many).map((group) => group.deadLetters.length)).toEqual([3_334, 3_333, 3_333]);
  });
});

test.each([
  ['the status, before a reading', null, { at: 5, count: 3 }, 3],
  ['the reading, before a status', { at: 5, total: 2 }, null, 2],
  ['the reading, if it is newer', { at: 6, total: 2 }, { at: 5, count: 3 }, 2],
  ['the status, if it is newer', { at: 5, total: 2 }, { at: 6, count: 3 }, 3],
  ['neither', null, null, undefined],
])('the number of dead letters is that of %s', (_, result, status, expected) => {
  const source = 'consumer:payments';
  const letters = { source, oldestAt: null, firstExpiryAt: null };
  const live = status && { at: status.at, deadLetterSources: [{ ...letters, count: status.count }] };
  expect(totalOf(source, result, live)).toBe(expected);
});
