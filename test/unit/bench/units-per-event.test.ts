import { expect, it } from 'vitest';
import type { System } from '../../../bench/alternatives/system.ts';
import {
  AT_ONCE,
  BATCHED,
  LARGE_PAYLOADS,
  LIMIT_REACHED,
  MAILROOM,
  ORDER_AND_TIME,
  UNCOMPRESSED,
} from '../../../bench/cost/mailroom.ts';
import { measure, total, type Usage } from '../../../bench/cost/measure.ts';
import { LARGE, orderTable, payloadTable, stepsTable } from '../../../bench/cost/tables.ts';
import { plainRuns } from '../../../bench/cost.ts';
import { costPage, line } from './cost-page.ts';

/** One whole batch of marks. */
const BATCH = { events: 25, payloadBytes: 200, consumers: 1, retries: 0, batchSize: 25 };
/** One whole batch of messages. */
const FULL = { ...BATCH, events: 10, batchSize: 10 };

const LEGEND = `What one event costs in Mailroom: requests and units by the published rules of AWS, averages over ${BATCH.events} events.
An event is written beside one domain row of under 1 KB, relayed by the stream, and handled by one consumer that writes one row.
A scheduled event is published by the sweep, or cancelled before it is due; the sweep's reads are its standing cost.
"Fails once": one of the ${BATCH.events} is refused by the bus once, and fails in the handler once.
`;

const plain = plainRuns([...Object.values(MAILROOM), UNCOMPRESSED], BATCH);
const ordered = plainRuns(ORDER_AND_TIME, BATCH);
/** As on the page. */
const large = plainRuns(LARGE_PAYLOADS, FULL, LARGE);

it('an event costs what was reviewed', async () => {
  const lines = [LEGEND];
  for (const { system, workload, event } of await plain) {
    lines.push(`${system.name}, payload of ${workload.payloadBytes} B`, ...stepLines(event.steps));
  }
  for (const system of Object.values(MAILROOM)) {
    const { steps } = await measure(system, { ...BATCH, retries: 1 });
    lines.push(`${system.name}, payload of ${BATCH.payloadBytes} B, fails once`, ...stepLines(steps));
  }
  for (const { system, workload, event } of [
    ...(await plainRuns([AT_ONCE, LIMIT_REACHED], BATCH)),
    ...(await ordered),
    ...(await large),
  ]) {
    lines.push(`${system.name}, payload of ${workload.payloadBytes} B`, ...stepLines(event.steps));
  }
  await expect(
    `${lines.join('\n')}\n`,
    'An event costs something else than before. If that is meant, say in the commit what it gives for its price, and renew ' +
      'the reviewed text with: npx vitest run --project bench test/unit/bench/units-per-event.test.ts -u',
  ).toMatchFileSnapshot('units-per-event.txt');
});

it('docs/cost.md shows these steps', async () => {
  const { rows } = await stepsTable(await plain);
  for (const row of rows) expect(costPage()).toContain(line(row));
});

it('docs/cost.md shows what order and time cost', async () => {
  // Dollars depend on the size of the batch; units do not.
  const units = (row: string | undefined) => row?.split(' | ').slice(0, 5);
  // Those of a batch handler depend on how full its batches are: on the page, they are.
  const full = await plainRuns(BATCHED, FULL);
  const { rows } = orderTable([...full, ...(await plain), ...(await ordered)]);
  const shown = costPage().split('<!-- bench:cost-order -->')[1]?.split('\n') ?? [];
  for (const row of rows) expect(shown.map(units)).toContainEqual(units(line(row)));
});

it('docs/cost.md shows what a payload costs in its row and in S3', async () => {
  for (const row of payloadTable(await large).rows) expect(costPage()).toContain(line(row));
});

it('docs/cost.md says from which size S3 is cheaper than a row', async () => {
  const runs = await large;
  const dearer = (system: System | undefined) =>
    LARGE.map((bytes) => {
      const usd = (of: System | undefined) =>
        runs
          .filter(({ system, workload }) => system === of && workload.payloadBytes === bytes)
          .map((run) => total(run.usd))[0] ?? Number.NaN;
      return usd(system) > usd(LARGE_PAYLOADS.at(-1));
    });
  expect(LARGE_PAYLOADS.slice(0, -1).map(dearer)).toEqual([
    [false, true, true],
    [true, true, true],
  ]);
  expect(costPage().replaceAll('\n', ' ')).toContain(
    `from about ${LARGE[1] / 1_024} KB of realistic JSON, or ${LARGE[0] / 1_024} KB that do not compress`,
  );
});

function stepLines(steps: ReadonlyMap<string, Usage>): string[] {
  return [...steps].map(([step, usage]) => `  ${step.padEnd(9)}${usageText(usage)}`);
}

function usageText({ writeUnits, readUnits, dynamodbCalls, busCalls, busEvents, ...rest }: Usage): string {
  const parts = [
    [writeUnits, 'write units'],
    [readUnits, 'read units'],
    [dynamodbCalls, 'DynamoDB calls'],
    [busCalls, 'PutEvents calls'],
    [busEvents, 'bus events'],
    [rest.queueRequests, 'SQS requests'],
    [rest.invocations, 'invocations'],
    [rest.objectWrites, 'PutObject calls'],
    [rest.objectReads, 'GetObject calls'],
  ] as const;
  const made = parts.filter(([count]) => count > 0);
  return made.map(([count, what]) => `${Number(count.toFixed(4))} ${what}`).join(', ');
}
