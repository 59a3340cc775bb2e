import { afterEach, beforeEach, expect, test } from 'vitest';
import { runMailroom } from '../../../cli/program.ts';
import { EXIT } from '../../../cli/terminal/io.ts';
import { countingAws } from './support/counting-aws.ts';

let aws: Awaited<ReturnType<typeof countingAws>>;

beforeEach(async () => {
  aws = await countingAws();
});
afterEach(() => aws.close());

async function run(...words: readonly string[]) {
  let out = '';
  let err = '';
  const io = {
    env: { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' },
    outIsTerminal: false,
    errIsTerminal: false,
    outSize: () => undefined,
    out: (text: string) => {
      out += text;
    },
    err: (text: string) => {
      err += text;
    },
    signal: new AbortController().signal,
    exitCode: EXIT.ok,
  };
  const code = await runMailroom(
    [...words, '--json', '--endpoint', aws.endpoint, '--region', 'eu-west-1'],
    io,
  );
  return { code, out, err };
}

/** Each request takes 30 ms from an operator's machine. */
const REQUEST_MS = 30;

test('status of an order system takes few requests, and few of them wait for others', async () => {
  const { code, out, err } = await run('status');
  expect({ code, err, pending: JSON.parse(out).outbox.pending }).toEqual({
    code: EXIT.ok,
    err: '',
    pending: 0,
  });
  // The partitions of 121 minutes in 8 shards, of the minutes to sweep, of dead letters and of consumers.
  const { count } = aws;
  // Where two reads are ready at the same moment, one statement has the partitions of both.
  expect(count('ExecuteStatement')).toBeLessThanOrEqual(24);
  // The rules of the bus are one list, and the schedule of the sweep is on another bus. SQS and Lambda have no request for several.
  expect([count('ListRules'), count('DescribeRule'), count('ListTargetsByRule')]).toEqual([1, 1, 6]);
  expect([count('GetQueueAttributes'), count('GetFunctionConcurrency')]).toEqual([16, 7]);
  expect(count('GetFunctionConfiguration')).toBe(0);
  expect([count('Query'), count('DescribeTable')]).toEqual([1, 1]);
  expect(count('ListEventSourceMappings')).toBe(1);
  expect(aws.operations.length).toBeLessThanOrEqual(62);
  expect(aws.rounds() * REQUEST_MS).toBeLessThanOrEqual(150);
});

test('why of an event without a row takes few requests', async () => {
  const { code } = await run('why', '019b76ea-b0e8-75a0-abb6-c1ccd7e2ed00');
  expect(code).toBe(EXIT.attention);
  expect(aws.operations.length).toBeLessThanOrEqual(11);
  expect(aws.rounds() * REQUEST_MS).toBeLessThanOrEqual(210);
});
