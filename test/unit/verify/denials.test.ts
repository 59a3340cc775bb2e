import type { InvokeCommand } from '@aws-sdk/client-lambda';
import { describe, expect, test } from 'vitest';
import { denialChecks } from '../../../verify/checks/denials.ts';
import type { DeployedSystem } from '../../../verify/deployed-system.ts';
import type { ProbeCall, ProbeOutcome } from '../../../verify/probe-call.ts';
import { untilOf } from '../../../verify/until.ts';

/** A deployment whose probes answer as `judge` says. */
function deployment(judge: (call: ProbeCall) => ProbeOutcome['kind'], endpoint?: string): DeployedSystem {
  const send = async ({ input }: InvokeCommand) => {
    const { calls } = JSON.parse(String(input.Payload)) as { readonly calls: readonly ProbeCall[] };
    const outcomes = calls.map((call) => ({ kind: judge(call), error: 'why' }));
    return { Payload: new TextEncoder().encode(JSON.stringify(outcomes)) };
  };
  return {
    target: { account: '111122223333', region: 'eu-west-1', endpoint },
    lambda: { send },
    outputs: { ProbeRelay: 'relay-probe' },
    directory: { mailroom: { table: 'table', bus: 'bus' } },
    until: untilOf(new AbortController().signal, { deadlineMs: 0 }),
  } as never;
}

/** The one right of the relay that is tried: it puts events of declared sources. */
const isItsRight = (call: ProbeCall) =>
  call.command === 'PutEvents' && call.input.Entries?.[0]?.Source === 'orders';

const relay = denialChecks.find(({ name }) => name.includes('the relay'));
const run = async (system: DeployedSystem) => relay?.run(system);
const LOCAL = 'http://127.0.0.1:4566';

describe('the denials of a role', () => {
  test('passed if every forbidden call is denied and the role has its rights', async () => {
    const system = deployment((call) => (isItsRight(call) ? 'allowed' : 'denied'));
    expect(await run(system)).toMatchObject({
      outcome: 'passed',
      detail: expect.stringContaining('put an event of another source'),
    });
  });

  test('fail if one forbidden call is let through, and name it', async () => {
    const hole = (call: ProbeCall) => isItsRight(call) || call.command === 'DeleteItem';
    for (const endpoint of [undefined, LOCAL]) {
      const system = deployment((call) => (hole(call) ? 'allowed' : 'denied'), endpoint);
      await expect(run(system)).rejects.toThrow(/^delete an outbox row: allowed/);
    }
  });

  test('fail if an outcome is unknown: a throttled call was not denied', async () => {
    const system = deployment((call) => (isItsRight(call) ? 'allowed' : 'unknown'));
    await expect(run(system)).rejects.toThrow('unknown why');
  });

  test('fail if the role is denied everything: that shows nothing', async () => {
    await expect(run(deployment(() => 'denied'))).rejects.toThrow(
      "the relay's role may do what it needs: put an event of a declared source",
    );
  });

  test('cannot be shown by an engine that lets every call through; in an account, that is a failure', async () => {
    expect(await run(deployment(() => 'allowed', LOCAL))).toEqual({
      outcome: 'not-shown',
      detail: 'the engine enforces no IAM: it let all 5 forbidden calls through',
    });
    await expect(run(deployment(() => 'allowed'))).rejects.toThrow('add an outbox row: allowed');
  });
});
