import { CONSUMERS } from './readings.ts';
import type { Receipt } from './receipt.ts';
import type { Latency } from './run-figures.ts';

type Row = readonly [name: string, value: string | number];

const COLUMN = 28;

/**
 * Formats the receipt for people: its sentence, the problems, and about ten lines.
 *
 * @param isVerbose - adds every count
 */
export function printReceipt(receipt: Receipt, { isVerbose = false } = {}): string {
  const { problems } = receipt;
  const lines = (rows: readonly Row[]) => rows.map(([name, value]) => `  ${name.padEnd(COLUMN)}${value}`);
  return [
    `${receipt.headline}: ${reasonOf(receipt)}.`,
    ...(problems.length > 1 ? problems.map((problem) => `  - ${problem}`) : []),
    '',
    ...lines(summaryRows(receipt)),
    '',
    'On a local AWS on this machine:',
    ...lines(latencyRows(receipt)),
    ...(isVerbose ? ['', 'All counts:', ...lines(countRows(receipt))] : []),
  ].join('\n');
}

/** The reason of the result: the counts, or the worst problem. */
function reasonOf({ problems, orders, duplicatesAbsorbed }: Receipt): string {
  const [worst, ...others] = problems;
  if (worst === undefined)
    return `${many(orders, 'order')}, ${many(duplicatesAbsorbed, 'duplicate')} absorbed`;
  return others.length === 0 ? worst : `${worst} (and ${others.length} more)`;
}

function many(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function summaryRows(receipt: Receipt): Row[] {
  const { processed, bridge } = receipt;
  const messages = CONSUMERS.reduce((sum, consumer) => sum + processed[consumer], 0);
  return [
    ['orders', `${receipt.orders}: ${receipt.confirmed} confirmed, ${receipt.cancelled} cancelled`],
    ['events published', receipt.eventsPublished],
    ['messages processed', `${messages} by ${CONSUMERS.length} consumers`],
    ['duplicates', `${receipt.duplicatesSent} sent, ${receipt.duplicatesAbsorbed} absorbed`],
    [
      'charges at the bank',
      `${receipt.charges}: ${receipt.doubleCharges} double, ${receipt.missingCharges} missing, ${receipt.refunds} refunded`,
    ],
    ['e-mails sent', receipt.emails],
    ...(bridge
      ? [
          ['sent by the bridge', bridge.sent] as const,
          [
            `at ${bridge.target}`,
            `${bridge.received} received, ${bridge.distinct} distinct, ${bridge.lost} lost`,
          ] as const,
        ]
      : []),
  ];
}

function latencyRows(receipt: Receipt): Row[] {
  const text = ({ p50, p90, p99 }: Latency) => `p50 ${p50} ms, p90 ${p90} ms, p99 ${p99} ms`;
  return [
    ['commit -> published', text(receipt.commitToPublishedMs)],
    ['commit -> processed', text(receipt.commitToProcessedMs)],
    ['commit -> charged', text(receipt.commitToChargedMs)],
  ];
}

function countRows(receipt: Receipt): Row[] {
  const { bankLimit, batches } = receipt;
  return [
    ['orders confirmed', receipt.confirmed],
    ['orders cancelled', receipt.cancelled],
    ['orders expired', receipt.expired],
    ['expiries scheduled', receipt.scheduled],
    ['expiries cancelled', receipt.timersCancelled],
    ...CONSUMERS.map((consumer): Row => [`processed by ${consumer}`, receipt.processed[consumer]]),
    ['payments rejected', receipt.rejected],
    ['reports superseded', receipt.superseded],
    ['duplicates sent', receipt.duplicatesSent],
    ['duplicates absorbed', receipt.duplicatesAbsorbed],
    ['refunds', receipt.refunds],
    [
      'charges in one second',
      `${bankLimit.mostInASecond} of ${bankLimit.allowedInASecond} that the limit allows`,
    ],
    ['waited for the limit', bankLimit.waited],
    ['reserved in batches', `${batches.messages} in ${batches.transactions} transactions`],
  ];
}
