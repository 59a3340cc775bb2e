import type { Pool, PoolConnection } from 'mysql2/promise';
import { describe, expect, test } from 'vitest';
import type { Database } from '../../../lambdas/runtime/store/sql/database.ts';
import { type Change, changedDatabase } from './changed-database.ts';

/** Makes a database whose statements lack the clauses of a hole; `change` adds what happens meanwhile. */
export type MakeDatabase = (change?: Change) => Database<PoolConnection>;

/** A rule, its clauses with their replacements without it, and a situation. @returns true if the rule is broken in it */
export interface Hole {
  readonly rule: string;
  readonly changes: readonly (readonly [clause: string, replacement: string])[];
  readonly isBroken: (make: MakeDatabase) => Promise<boolean>;
}

/** Shows that each rule holds with its clauses, and is broken without them. */
export function describeHoles(holes: readonly Hole[], pool: () => Pool): void {
  describe.each(holes)('$rule', ({ changes, isBroken }) => {
    /** @param isHoled - its statements lack the clauses */
    function makes(isHoled: boolean) {
      const found = new Set<string>();
      const make: MakeDatabase = (change = (query, send) => send(query)) =>
        changedDatabase(pool(), (query, send, connection) => {
          let { sql } = query;
          for (const [clause, replacement] of isHoled ? changes : []) {
            if (sql.includes(clause)) found.add(clause);
            sql = sql.replaceAll(clause, replacement);
          }
          return change({ ...query, sql }, send, connection);
        });
      return { make, found };
    }

    test('with its clause', async () => {
      expect(await isBroken(makes(false).make)).toBe(false);
    });

    test('not without its clause', async () => {
      const { make, found } = makes(true);
      expect(await isBroken(make)).toBe(true);
      expect(found.size).toBe(changes.length);
    });
  });
}
