import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import Table from 'cli-table3';
import type { Reporter } from 'vitest/node';
import { localFile } from '../../localstack/workspace.ts';
import { RECEIPT, type Receipt } from './receipts.ts';

const COLUMNS = ['broker', 'scenario', 'sent', 'received', 'distinct', 'outOfOrder', 'lost'] as const;

/** The results of the last run as JSON: the numbers of tests that `passed`, `failed` and were `skipped`, and the `receipts`. */
export const RECEIPTS_FILE = localFile('brokers/receipts.json');

/** Prints the receipts of all tests as a table, and writes {@link RECEIPTS_FILE}. */
export const receiptReporter: Reporter = {
  onTestRunEnd: (modules) => {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const receipts = tests
      .flatMap((test) => test.annotations())
      .filter(({ type }) => type === RECEIPT)
      .map(({ message }) => JSON.parse(message) as Receipt);
    const counts = { passed: 0, failed: 0, skipped: 0, pending: 0 };
    for (const test of tests) counts[test.result().state] += 1;
    mkdirSync(dirname(RECEIPTS_FILE), { recursive: true });
    writeFileSync(RECEIPTS_FILE, `${JSON.stringify({ ...counts, receipts }, null, 2)}\n`);
    if (receipts.length === 0) return;
    const table = new Table({ head: [...COLUMNS], style: { head: [], border: [] } });
    for (const receipt of receipts) table.push(COLUMNS.map((column) => receipt[column]));
    console.log(table.toString());
    console.log(`As JSON: ${RECEIPTS_FILE}`);
  },
};
