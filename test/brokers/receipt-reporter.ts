import { writeFileSync } from 'node:fs';
import Table from 'cli-table3';
import type { Reporter } from 'vitest/node';
import { localFile } from '../../localstack/workspace.ts';
import { RECEIPT, type Receipt } from './receipts.ts';

const COLUMNS = ['broker', 'scenario', 'sent', 'received', 'distinct', 'outOfOrder', 'lost'] as const;

/** Prints the receipts of all tests as a table, and writes them to `.local/brokers/receipts.json`. */
export const receiptReporter: Reporter = {
  onTestRunEnd: (modules) => {
    const receipts = modules
      .flatMap((module) => [...module.children.allTests()])
      .flatMap((test) => test.annotations())
      .filter(({ type }) => type === RECEIPT)
      .map(({ message }) => JSON.parse(message) as Receipt);
    if (receipts.length === 0) return;
    const table = new Table({ head: [...COLUMNS], style: { head: [], border: [] } });
    for (const receipt of receipts) table.push(COLUMNS.map((column) => receipt[column]));
    console.log(table.toString());
    const file = localFile('brokers/receipts.json');
    writeFileSync(file, `${JSON.stringify(receipts, null, 2)}\n`);
    console.log(`As JSON: ${file}`);
  },
};
