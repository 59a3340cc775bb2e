import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { freePort } from '../../../localstack/free-port.ts';
import { mailroomAt } from '../../local/support/mailroom.ts';
import { unwrapped } from '../../support/captured-io.ts';

/** A Parameter Store that holds nothing. @returns what `run` returns */
async function whereNothingIsDeployed<T>(run: (endpoint: string) => Promise<T>): Promise<T> {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'application/x-amz-json-1.1').end('{"Parameters":[]}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    return await run(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

describe('mailroom says what to do', () => {
  it('when nothing is deployed', async () => {
    const { code, err } = await whereNothingIsDeployed((endpoint) => mailroomAt(endpoint, 'status'));
    expect(code).toBe(3);
    expect(unwrapped(err)).toMatch(/NOTHING_DEPLOYED: .*cdk deploy/);
  });

  it('when nothing answers', async () => {
    const { code, err } = await mailroomAt(`http://127.0.0.1:${await freePort()}`, 'status', '--json');
    expect(code).toBe(4);
    expect(JSON.parse(err)).toMatchObject({
      error: { code: 'UNREACHABLE', message: expect.stringContaining('--endpoint') },
    });
  });
});

describe('mailroom refuses without a call', () => {
  it.each([
    [['nonsense'], "unknown command 'nonsense'"],
    [['why'], "missing required argument 'id'"],
    [['why', 'x', '--since', '5'], 'a whole number with a unit'],
    [['why', 'x', '--since', '500d'], 'at most 400d'],
    [['messages', 'list', '--limit', '0'], 'a whole number from 1'],
    [['messages', 'list', '--by', 'type'], 'Allowed choices are cause'],
    [['status', 'now'], 'too many arguments'],
    [['status', '--watchful'], "unknown option '--watchful'"],
    [['status', '--endpoint', 'here'], 'expected an address like'],
  ])('%j', async (argv, complaint) => {
    const people = await mailroomAt('http://127.0.0.1:9', ...argv);
    expect(people.code).toBe(2);
    expect(unwrapped(people.err)).toContain(complaint);
    expect(people.out).toBe('');
    const machine = await mailroomAt('http://127.0.0.1:9', ...argv, '--json');
    expect(machine.code).toBe(2);
    expect(JSON.parse(machine.err).error).toMatchObject({
      code: 'BAD_ARGUMENT',
      message: expect.stringContaining(complaint),
    });
  });
});

it('--help lists the options of a command without a call', async () => {
  for (const argv of [['--help'], ['status', '--help'], ['messages', 'list', '--help'], ['help', 'why']]) {
    const { code, out } = await mailroomAt('http://127.0.0.1:9', ...argv);
    expect(code).toBe(0);
    expect(out).toContain('Usage: npx cdk-mailroom');
    expect(out).toMatch(/--endpoint <url>/);
  }
});
