import { expect, test } from 'vitest';
import { type BridgeResult, bridge } from '../../../lambdas/runtime/bridge.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { mailroomInMemory, worker } from './support/mailroom-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';
import { drained } from './support/why-rig.ts';

const forwardsTo = { kind: 'Kafka', name: 'topic orders' };

/** A Mailroom whose only consumer is a bridge, with an event that it has received. */
async function bridged(result: BridgeResult, order?: string) {
  const to = {
    name: () => forwardsTo.name,
    limits: { entries: 1, bytes: 10_000 },
    send: async () => [result],
  };
  const mailroom = mailroomInMemory(bridge({ to, events: [ThingHappened] }));
  const eventId = await drained(mailroom);
  const directory = { ...mailroom.directory, consumers: [{ ...worker, forwardsTo, order }] };
  const run = async (...args: string[]) => {
    const { out } = await runInMemory({ ...mailroom, directory }, args);
    return { out: unwrapped(out), json: () => JSON.parse(out) };
  };
  return { run, eventId };
}

test('why names the place of a forwarded event at its target', async () => {
  const { run, eventId } = await bridged({ ok: true, place: { partition: 3, offset: '812' } });
  expect((await run('why', eventId)).out).toMatch(/topic orders, .*3, .*812/);
});

test('why names the target that refused an event, and its reason', async () => {
  const refused = { ok: false, refusal: 'invalid', code: 'INVALID_RECORD', message: 'no such key' } as const;
  const { run, eventId } = await bridged(refused);
  const { out } = await run('why', eventId);
  expect(out).toMatch(/^rejected .*topic orders .*INVALID_RECORD/);
});

test('describe and status show the target of a bridge, and nothing for another consumer', async () => {
  const result: BridgeResult = { ok: true, place: {} };
  const { run } = await bridged(result, 'strict:block');
  expect((await run('describe', 'worker', '--json')).json()).toMatchObject({
    forwardsTo,
    order: 'strict:block',
  });
  const status = await run('status');
  expect(status.out).toMatch(/worker .* topic orders/);
  expect((await run('status', '--json')).json().consumers.worker).toMatchObject({
    forwardsTo: 'topic orders',
  });
  const plain = await runInMemory(mailroomInMemory([]), ['status']);
  expect(plain.out).not.toContain('forwards to');
});
