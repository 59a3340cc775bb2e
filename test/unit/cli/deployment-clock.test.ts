import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { runMailroom } from '../../../cli/program.ts';
import { mailroomEntryName } from '../../../lambdas/runtime/operations/directory.ts';
import { capturedIo, unwrapped } from '../../support/captured-io.ts';
import { directory } from './support/mailroom-in-memory.ts';

const { mailroom } = directory;
const Parameters = [{ Name: mailroomEntryName(mailroom.table), Value: JSON.stringify(mailroom) }];

/** Runs `mailroom operations` against an AWS with an empty table. @param aheadMs - how far its clock is ahead; absent when it does not tell */
async function logAt(aheadMs: number | undefined, ...options: string[]) {
  const server = createServer((_request, response) => {
    response.sendDate = false;
    if (aheadMs !== undefined) response.setHeader('date', new Date(Date.now() + aheadMs).toUTCString());
    response.setHeader('content-type', 'application/x-amz-json-1.1');
    response.end(JSON.stringify({ Parameters, Items: [], Count: 0 }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { io, written } = capturedIo({ env: { AWS_ENDPOINT_URL: endpoint } });
  try {
    const code = await runMailroom(['operations', ...options], io);
    return { code, ...written };
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

test('a clock that is off by hours is reported once, but not to a program that reads the output', async () => {
  const behind = await logAt(6 * 3_600_000);
  expect(
    unwrapped(behind.err).match(/clock is at least (6 h|5 h 59 min).* behind AWS's/g),
    behind.err,
  ).toHaveLength(1);
  const ahead = await logAt(-6 * 3_600_000);
  expect(
    unwrapped(ahead.err).match(/clock is at least (6 h|5 h 59 min).* ahead of AWS's/g),
    ahead.err,
  ).toHaveLength(1);
  expect(await logAt(-6 * 3_600_000, '--json')).toMatchObject({ code: 0, err: '' });
});

test('a correct clock is not reported', async () => {
  expect(await logAt(0)).toMatchObject({ code: 0, err: '' });
});

test('an AWS that does not say what time it is: the command says by which rule it goes', async () => {
  const { code, err } = await logAt(undefined);
  expect(code).toBe(0);
  expect(unwrapped(err)).toMatch(/carry no time.*seen unchanged for its whole duration/);
});
