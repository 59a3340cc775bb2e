import fc from 'fast-check';
import type { Clock } from '../../../lambdas/runtime/base/clock.ts';
import type { Table } from '../../../lambdas/runtime/store/table.ts';

/** How one call of the table goes: well, not at all, or well with an answer that never comes. */
type CallMood = 'well' | 'refused' | 'lost';

/** How the next calls go; after them all go well. */
export type TableMoods = readonly CallMood[];

export const tableMoods: fc.Arbitrary<TableMoods> = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.constant('well' as const) },
    { weight: 2, arbitrary: fc.constantFrom('refused' as const, 'lost' as const) },
  ),
  { maxLength: 60, size: 'max' },
);

/** A table whose calls go like this, each taking a moment. */
export function flakyTable(table: Table, clock: Clock, moods: TableMoods): Table {
  let number = 0;
  const call = async <T>(work: () => Promise<T>): Promise<T> => {
    const mood = moods[number];
    number += 1;
    await clock.sleep(5);
    if (mood === 'refused') throw named('ProvisionedThroughputExceededException');
    const result = await work();
    if (mood === 'lost') throw named('TimeoutError');
    return result;
  };
  return {
    ...table,
    get: (...args) => call(() => table.get(...args)),
    getEach: (...args) => call(() => table.getEach(...args)),
    query: (...args) => call(() => table.query(...args)),
    write: (...args) => call(() => table.write(...args)),
    transact: (...args) => call(() => table.transact(...args)),
    updateEach: (...args) => call(() => table.updateEach(...args)),
  };
}

function named(name: string): Error {
  return Object.assign(new Error(name), { name });
}
