import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, inject, it } from 'vitest';
import { freePort } from '../../../localstack/free-port.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { mailroom, mailroomAt } from '../support/mailroom.ts';

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

describe('the command finds the Mailroom', () => {
  it('by its stage, by its stack, and if there is only one, without either', async () => {
    for (const where of [['--stage', 'local'], ['--stack', 'mailroom-local'], []]) {
      const { json, code } = await mailroom('log', '--json', ...where);
      expect(code).toBe(0);
      expect(json()).toHaveProperty('operations');
    }
  });

  it('by options before the command, too', async () => {
    const endpoint = inject('endpoint');
    const { code } = await mailroomAt('http://127.0.0.1:9', '--endpoint', endpoint, '--json', 'log');
    expect(code).toBe(0);
  });
});

describe('the command says what to do', () => {
  it('with an unknown stage: the known ones', async () => {
    const { code, out, err } = await mailroom('status', '--stage', 'prod');
    expect(code).toBe(3);
    expect(out).toBe('');
    expect(unwrapped(err)).toMatch(/NO_SUCH_STAGE: No Mailroom in us-east-1 at http.* matches stage "prod"/);
    expect(unwrapped(err)).toContain('Stacks with a Mailroom: mailroom-local');
  });

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

  it('with an unknown consumer: the known ones', async () => {
    const { code, err } = await mailroom('messages', 'list', '--consumer', 'payment');
    expect(code).toBe(3);
    expect(unwrapped(err)).toContain('Consumers: inventory, notifications, order-status, payments');
  });
});

describe('the command refuses, before it looks anywhere,', () => {
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

it('the help of every command lists its options, and makes no call', async () => {
  for (const argv of [['--help'], ['status', '--help'], ['messages', 'list', '--help'], ['help', 'why']]) {
    const { code, out } = await mailroomAt('http://127.0.0.1:9', ...argv);
    expect(code).toBe(0);
    expect(out).toContain('Usage: npx cdk-mailroom');
    expect(out).toMatch(/--endpoint <url>/);
  }
});
