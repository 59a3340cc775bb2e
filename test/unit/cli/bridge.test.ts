import { expect, test } from 'vitest';
import { strict } from '../../../lambdas/runtime/base/order.ts';
import { type BridgedEvent, type BridgeResult, bridge } from '../../../lambdas/runtime/bridge.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { Counted, ThingHappened } from '../../support/runtime-rig.ts';
import { mailroomInMemory, worker } from './support/mailroom-in-memory.ts';
import { operatingMailroom } from './support/operating-mailroom.ts';
import { APPLY } from './support/ordered-mailroom.ts';
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

/** A bridge of numbered events in order, to a target that answers each. */
function operated(answer: (event: BridgedEvent['event']) => BridgeResult) {
  const taken: string[] = [];
  const to = {
    name: () => forwardsTo.name,
    limits: { entries: 10, bytes: 10_000 },
    send: async (entries: readonly BridgedEvent[]) =>
      entries.map(({ event }) => {
        const result = answer(event);
        if (result.ok) taken.push(event.eventId);
        return result;
      }),
  };
  const made = operatingMailroom(bridge({ to, events: [Counted] }), {
    config: { order: strict(), maxReceives: 6 },
  });
  const directory = {
    ...made.directory,
    consumers: [{ ...worker, events: [Counted], forwardsTo, order: 'strict:block' }],
  };
  const text = async (...argv: string[]) => {
    const { out, err } = await made.until(runInMemory({ ...made, directory }, argv));
    return unwrapped(out + err);
  };
  const commit = async (aggregateId: string, ...numbers: readonly number[]) => {
    const ids: string[] = [];
    for (const sequence of numbers) {
      const event = Counted.create({ aggregateId, sequence, data: { n: sequence } });
      const [committed] = await made.outbox.commit({ events: [event] });
      ids.push(committed?.eventId ?? '');
    }
    return ids;
  };
  return { ...made, taken, text, commit };
}

test('a target whose credentials are wrong: status names the cause, and one redrive sends each event once, in order', async () => {
  let isRepaired = false;
  const message = 'wrong password';
  const denied = { ok: false, refusal: 'denied', code: 'SASL_AUTHENTICATION_FAILED', message } as const;
  const { commit, publish, drain, text, taken } = operated(() =>
    isRepaired ? { ok: true, place: {} } : denied,
  );
  const ids = await commit('1', 1, 2, 3);
  await publish();
  await drain();
  const status = await text('status');
  const [list = ''] = /dlq list consumer:worker --by cause/.exec(status) ?? [];
  expect(await text(...list.split(' '))).toMatch(
    /topic orders did not take .*wrong password.*Correct the credentials/,
  );
  isRepaired = true;
  expect(await text('dlq', 'redrive', 'consumer:worker', ...APPLY)).toContain('3 of 3 processed');
  expect(taken).toEqual(ids);
});

test('an event that a target refuses beside good ones: only its aggregate waits, why warns that a redrive is refused again, and goes on after a skip', async () => {
  const refused = { ok: false, refusal: 'invalid', code: 'INVALID_RECORD', message: 'no such key' } as const;
  const { commit, publish, drain, text, taken } = operated(({ aggregateId, sequence }) =>
    aggregateId === '1' && sequence === 2 ? refused : { ok: true, place: {} },
  );
  const [first, poison = '', later = ''] = await commit('1', 1, 2, 3);
  const [other] = await commit('2', 1);
  await publish();
  await drain();
  expect(taken.toSorted()).toEqual([first, other].toSorted());
  const why = await text('why', later);
  expect(why).toContain(`Number 2 is Counted ${poison}, which was rejected by worker (BRIDGE_REJECTED)`);
  expect(await text('why', poison)).toMatch(
    /refuses it again until the target changes.*dlq discard consumer:worker/,
  );
  const [skip = ''] = /order skip worker Thing 1 2/.exec(why) ?? [];
  await text(...skip.split(' '), ...APPLY);
  expect(await text('dlq', 'redrive', 'consumer:worker', ...APPLY)).toContain('1 of 1 processed');
  expect(taken.filter((id) => id === later)).toHaveLength(1);
  expect(taken).not.toContain(poison);
});
