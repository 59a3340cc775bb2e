import type { Table } from '../../lambdas/runtime/store/table.ts';
import { type Differences, describeCases, type Subject } from './cases.ts';
import { conditionCases } from './table-conditions.ts';
import { getEachCases } from './table-get-each.ts';
import { queryCases } from './table-queries.ts';
import { refusalCases } from './table-refusals.ts';
import { transactionCases } from './table-transactions.ts';
import { updateEachCases } from './table-update-each.ts';
import { updateCases } from './table-updates.ts';
import { valueCases } from './table-values.ts';
import { writeCases } from './table-writes.ts';

/** The suite that every implementation of the table port must pass. */
export function describeTable(
  name: string,
  make: () => Promise<Subject<Table>>,
  differences?: Differences,
): void {
  const cases = [
    ...writeCases,
    ...conditionCases,
    ...updateCases,
    ...refusalCases,
    ...valueCases,
    ...queryCases,
    ...getEachCases,
    ...transactionCases,
    ...updateEachCases,
  ];
  describeCases(name, cases, make, differences);
}
