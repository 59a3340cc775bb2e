import { DeleteCommand } from '@aws-sdk/lib-dynamodb';
import { expect, test } from 'vitest';
import { RULE_DELAY_MS } from '../../../lambdas/runtime/operations/audit/audit-declaration.ts';
import type { HeartbeatReport } from '../../../lambdas/runtime/operations/heartbeat/heartbeat-handler.ts';
import { HEARTBEAT_STATE_KEY } from '../../../lambdas/runtime/store/keys.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { eventually } from '../support/eventually.ts';
import { deployed, documents, invoke, output } from '../support/features.ts';
import { mailroom } from '../support/mailroom.ts';

/** Runs the function of the heartbeat as its schedule does, as if the last run were long ago. @returns the event id */
async function beat(): Promise<string> {
  const { mailroom: entry } = await deployed();
  await documents.send(
    new DeleteCommand({ TableName: output('TableName'), Key: { ...HEARTBEAT_STATE_KEY } }),
  );
  const { sent } = (await invoke(entry.heartbeat?.function ?? '', {})) as HeartbeatReport;
  return sent ?? expect.fail('The run sent no heartbeat');
}

const heartbeat = async () => (await mailroom('status', '--json')).json().heartbeat;

/** Sends a heartbeat that every consumer must acknowledge: for the first minute, a new rule may not deliver yet. */
async function countedBeat(): Promise<string> {
  await eventually(async () => {
    const { consumers } = await deployed();
    for (const { changedAt = 0 } of consumers) expect(Date.now()).toBeGreaterThan(changedAt + RULE_DELAY_MS);
  }, RULE_DELAY_MS);
  return beat();
}

test('a heartbeat passes the whole path, and every consumer acknowledges it', async () => {
  const eventId = await countedBeat();
  await eventually(async () => {
    expect(await heartbeat()).toMatchObject({ state: 'ok', acknowledged: 9, waiting: [], late: [] });
  });
  const why = await mailroom('why', eventId, '--json');
  expect(why.code, why.out).toBe(0);
  expect(why.json().events).toMatchObject([
    {
      type: 'Heartbeat',
      status: 'PUBLISHED',
      consumers: { reservations: 'PROCESSED', shipping: 'PROCESSED', thumbnails: 'PROCESSED' },
    },
  ]);
  expect(unwrapped((await mailroom('status')).out)).toMatch(/heartbeat \d+ \w+.* ago/);
});

test('a paused consumer receives nothing until it is resumed, and every command names the pause instead of a fault', async () => {
  const pause = await mailroom('pause', 'shipping', '--apply', '--reason', 'the warehouse moves');
  expect(pause.code, pause.out + pause.err).toBe(0);
  const { json, out } = await mailroom('status', '--json');
  expect(json().wiring.problems, out).toMatchObject([{ part: 'shipping', problem: 'paused' }]);
  expect(unwrapped((await mailroom('status')).out)).toMatch(
    /shipping has been paused since .*: the warehouse moves/,
  );
  expect(unwrapped((await mailroom('doctor')).out)).toContain('1 warning');

  const waiting = await countedBeat();
  await eventually(async () =>
    expect(await heartbeat()).toMatchObject({ acknowledged: 8, waiting: ['shipping'] }),
  );
  const why = await mailroom('why', waiting);
  expect(unwrapped(why.out)).toMatch(/shipping has been paused since .*: the warehouse moves/);
  expect(why.out).toContain('npx cdk-mailroom resume shipping');

  const resume = await mailroom('resume', 'shipping', '--apply', '--reason', 'the warehouse has moved');
  expect(resume.code, resume.out + resume.err).toBe(0);
  expect((await mailroom('status', '--json')).json().wiring.problems).toEqual([]);
  await eventually(async () => {
    const { events } = (await mailroom('why', waiting, '--json')).json();
    expect(events).toMatchObject([
      { consumers: { reservations: 'PROCESSED', shipping: 'PROCESSED', thumbnails: 'PROCESSED' } },
    ]);
  });
});
