import { expect, test } from 'vitest';
import type { BenchDatabase } from '../../../bench/sql/database.ts';
import { slowBus, steadily } from '../../../bench/sql/events.ts';
import { drainBeside } from '../../../bench/sql/quiet.ts';
import { countStatements } from '../../../bench/sql/statements.ts';

test('a backlog beside a snapshot is measured in fifths, and as far as it came', async () => {
  let held = 0;
  const holdSnapshot = async () => {
    held += 1;
    return async () => {
      held -= 1;
    };
  };
  const drainOf = (count: number) =>
    drainBeside({ holdSnapshot }, 'Mailroom', 10, async (onOne) => {
      expect(held).toBe(1);
      for (let n = 0; n < count; n += 1) onOne();
    });
  expect(await drainOf(10)).toMatchObject({ drained: 10, perSecond: { length: 5 } });
  expect(await drainOf(5)).toMatchObject({ drained: 5, perSecond: { length: 3 } });
  expect(held).toBe(0);
});

test('statements are counted from the first claim on, without those of the check of the server', async () => {
  let sent = 0;
  let isClosed = false;
  let due = 0;
  const database: Pick<BenchDatabase, 'outbox' | 'relayOf' | 'analyze' | 'statements' | 'close'> = {
    outbox: {
      commit: async (run) => {
        sent += 3;
        due += (await run({})).length;
        return [];
      },
    },
    relayOf: () => {
      let isChecked = false;
      const pass = async () => {
        sent += isChecked ? 1 + Math.ceil(due / 100) : 10;
        isChecked = true;
        due = 0;
        return { claimed: 0, published: 0, failed: false };
      };
      return { pass } as never;
    },
    analyze: async () => {},
    statements: () => sent,
    close: async () => {
      isClosed = true;
    },
  };
  expect(await countStatements(database as BenchDatabase)).toEqual({
    commit: 3,
    alone: 2,
    inBacklog: 0.011,
    emptyPoll: 1,
  });
  expect(isClosed).toBe(true);
});

test('a bus reports the age of each event, and a steady producer returns the number of its calls', async () => {
  const ages: number[] = [];
  const detail = JSON.stringify({ occurredAt: Date.now() - 1_000 });
  const answers = await slowBus(0, (age) => ages.push(age)).put(
    [{ source: 'a', detailType: 'b', detail }],
    1_000,
  );
  expect(answers).toEqual([{ ok: true, id: '1' }]);
  expect(ages[0]).toBeGreaterThanOrEqual(1_000);
  const calls: number[] = [];
  const written = await steadily(1_000, 20, async (n) => calls.push(n));
  expect(calls).toEqual(Array.from({ length: written }, (_, n) => n));
});
