import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { resentEventId } from '../../../cli/changes/resend/resend-plan.ts';
import { replacementOf } from '../../../cli/deployment/resent-event.ts';
import { discardMessage } from '../../../lambdas/runtime/operations/message-operations.ts';
import { eventIdShard, eventIdTime, outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { deadKey, inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../../lambdas/runtime/store/row-schema.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { APPLY, rejected, source } from './support/rejected-event.ts';
import { runInMemory } from './support/run-in-memory.ts';

const REDRIVE = ['dlq', 'redrive', source, '--apply', '--reason', 'a redrive of all'];

/** A dead letter whose resend stopped after the discard: its row names an event that was never sent. */
async function interrupted(options: Parameters<typeof rejected>[0] = {}) {
  const rig = await rejected(options);
  await rig.unsent(() => rig.resend({ n: 5 }, '--repeat-effects', ...APPLY));
  const newEventId = resentEventId('worker', rig.eventId, { n: 5 });
  expect(replacementOf(await rig.rowOf(rig.eventId))).toBe(newEventId);
  const resendById = (id: string, data: unknown, ...more: readonly string[]) =>
    rig.command(data, 'dlq', 'resend', source, id, '--data', '-', ...APPLY, ...more);
  return { ...rig, newEventId, resendById };
}

describe('a redrive after an interrupted resend', () => {
  test('keeps the dead letter, prints the command that completes the resend, and deletes the dead letter after it', async () => {
    const { command, letterId, letters, newEventId, ran, rowOf, resendById, ...rig } = await interrupted();
    const kept = await command('', ...REDRIVE);
    expect(kept).toMatchObject({ exitCode: 1, document: { verdicts: { unsent: 1, handled: 0 } } });
    expect(kept.document.deadLetters).toMatchObject([
      { verdict: 'unsent', outcome: 'kept', message: expect.stringContaining(newEventId) },
    ]);
    expect(await letters()).toEqual([letterId]);
    expect(rig.sent).toEqual([]);
    const { out } = await rig.until(runInMemory(rig, ['dlq', 'redrive', source]));
    const printed = /dlq resend (\S+) (\S+) --data data\.json --stage dev/.exec(unwrapped(out));
    expect(printed?.slice(1)).toEqual([source, letterId]);
    expect(unwrapped(out)).toContain('There is nothing to redrive.');
    expect((await resendById(printed?.[2] ?? '', { n: 5 })).document).toMatchObject({ outcome: 'processed' });
    expect(ran).toEqual([5]);
    expect(await rowOf(newEventId)).toMatchObject({ status: 'PROCESSED' });
    const deleted = await command('', ...REDRIVE);
    expect(deleted).toMatchObject({ exitCode: 0, document: { deadLetters: [{ outcome: 'deleted' }] } });
    expect(await letters()).toEqual([]);
    expect(ran).toEqual([5]);
  });

  test('redrives the other dead letters, and exits with 1', async () => {
    const { command, outbox, happened, publish, drain, clock, memory, letters, letterId, ran } =
      await interrupted();
    const [event] = await outbox.commit({ events: [happened(7)] });
    const row = {
      schema: 1,
      status: 'PROCESSING',
      fence: 'f',
      attempts: 5,
      leaseUntil: clock.now() + 600_000,
    };
    await memory.write({ Put: { Item: { ...inboxKey('worker', event?.eventId ?? ''), ...row } } });
    await publish();
    await drain(); // it is received until it is a dead letter
    await clock.advance(700_000);
    const { exitCode, document } = await command('', ...REDRIVE);
    expect(exitCode).toBe(1);
    expect(document.verdicts).toMatchObject({ runs: 1, unsent: 1 });
    expect(document.processed).toBe(1);
    expect(ran).toEqual([7]);
    expect(await letters()).toEqual([letterId]);
  });

  test('keeps the dead letter of the first of two events that replaced each other, until the second is received', async () => {
    const { command, unsent, letters, letterId, newEventId, eventId, ran, resendById, rowOf, clock } =
      await interrupted();
    const other = await unsent(() => resendById(letterId, { n: 6 }));
    expect(other.document.error.message).toBe('The command died');
    const second = resentEventId('worker', newEventId, { n: 6 });
    expect(replacementOf(await rowOf(newEventId))).toBe(second);
    expect((await command('', ...REDRIVE)).document.deadLetters).toMatchObject([
      { verdict: 'unsent', message: expect.stringContaining(second) },
    ]);
    await clock.advance(600_000);
    const why = await command('', 'why', eventId);
    expect(why).toMatchObject({ exitCode: 1, document: { verdict: { state: 'missing', eventId: second } } });
    expect(await letters()).toEqual([letterId]);
    // Any of the ids names the chain.
    expect((await resendById(newEventId, { n: 6 })).document).toMatchObject({
      id: letterId,
      eventId,
      replacedEventId: newEventId,
      newEventId: second,
      outcome: 'processed',
    });
    expect(ran).toEqual([6]);
    expect((await resendById(letterId, { n: 5 })).document.error).toMatchObject({ code: 'ALREADY_RESENT' });
    expect((await command('', ...REDRIVE)).exitCode).toBe(0);
    expect(ran).toEqual([6]);
  });
});

describe('a resend with other data', () => {
  test('replaces an event that was never received, which is absorbed if it arrives later', async () => {
    const { resend, eventId, newEventId, sent, ran, rowOf, queue, drain, command } = await interrupted();
    const plan = await resend({ n: 6 });
    const second = resentEventId('worker', newEventId, { n: 6 });
    expect(plan.document).toMatchObject({ eventId, replacedEventId: newEventId, newEventId: second });
    expect(await rowOf(newEventId)).toBeUndefined();
    expect((await resend({ n: 6 }, ...APPLY)).document).toMatchObject({ outcome: 'processed' });
    expect(ran).toEqual([6]);
    const { detail } = JSON.parse(sent[0]?.body ?? '');
    expect(detail).toMatchObject({ eventId: second, causationId: newEventId, hops: 2, data: { n: 6 } });
    expect(eventIdTime(second)).toBe(eventIdTime(eventId));
    queue.send(
      JSON.stringify({ ...JSON.parse(sent[0]?.body ?? ''), detail: { ...detail, eventId: newEventId } }),
    );
    await drain();
    expect(ran).toEqual([6]);
    expect((await command('', 'operations')).document.operations[0].subject).toBe(
      `${source}: ${newEventId} as ${second}`,
    );
    for (const id of [eventId, newEventId, second]) expect((await command('', 'why', id)).exitCode).toBe(0);
  });

  test('may have the data of the old event, which itself never runs again', async () => {
    const { resend, newEventId } = await interrupted();
    const { document } = await resend({ n: -1 }, ...APPLY);
    expect(document).toMatchObject({ replacedEventId: newEventId, changes: [], outcome: 'failed-again' });
  });

  test('names the event that it replaces to people', async () => {
    const { letterId, newEventId, ...rig } = await interrupted();
    const folder = await mkdtemp(join(tmpdir(), 'resend-'));
    const file = join(folder, 'data.json');
    await writeFile(file, '{"n": 6}');
    const { out } = await rig.until(runInMemory(rig, ['dlq', 'resend', source, letterId, '--data', file]));
    await rm(folder, { recursive: true });
    expect(unwrapped(out)).toContain(`in place of ${newEventId}, which worker has not received`);
  });

  test('is refused once the event in place of the old one was received', async () => {
    const { resend, ran, resendById, letterId } = await interrupted();
    await resendById(letterId, { n: 5 });
    expect((await resend({ n: 6 }, ...APPLY)).document.error.code).toBe('ALREADY_RESENT');
    expect(ran).toEqual([5]);
  });

  test('is refused if a worker takes the event in place of the old one after the plan', async () => {
    const { resend, deployment, table, newEventId, sent } = await interrupted();
    const { write } = table;
    const taken = { schema: 1, status: 'PROCESSING', leaseUntil: 4_000_000_000_000, fence: 'w', attempts: 1 };
    const afterPlan: typeof write = async (action) => {
      await write({ Put: { Item: { ...inboxKey('worker', newEventId), ...taken } } });
      return write(action);
    };
    Object.assign(deployment.table, { write: afterPlan });
    const { document } = await resend({ n: 6 }, ...APPLY);
    expect(document.error).toMatchObject({
      code: 'CANNOT_RESEND',
      message: expect.stringContaining(`Event ${newEventId} is leased`),
    });
    expect(sent).toEqual([]);
  });

  test('is refused if the first old event has started a side effect, until its provider was asked', async () => {
    const { resend, ran } = await interrupted({ effect: true });
    const { document } = await resend({ n: 6 }, ...APPLY);
    expect(document.error.message).toContain('charge (completed)');
    expect((await resend({ n: 6 }, '--repeat-effects', ...APPLY)).document.outcome).toBe('processed');
    expect(ran).toEqual([6]);
  });
});

describe('an interrupted resend whose dead letter is gone', () => {
  test('is missing for why of each of its events, and is completed by the printed command', async () => {
    const {
      command,
      redriveInConsole,
      letters,
      eventId,
      newEventId,
      rowOf,
      clock,
      ran,
      resendById,
      letterId,
    } = await interrupted();
    await redriveInConsole();
    expect(await letters()).toEqual([]);
    expect(await rowOf(eventId)).toMatchObject({ status: 'DISCARDED' });
    await clock.advance(600_000);
    for (const id of [eventId, newEventId]) {
      const { exitCode, document } = await command('', 'why', id);
      expect(exitCode).toBe(1);
      expect(document.verdict).toMatchObject({
        state: 'missing',
        eventId: newEventId,
        next: `npx cdk-mailroom dlq resend ${source} ${eventId} --data data.json --stage dev`,
      });
    }
    expect((await resendById(letterId, { n: 5 })).document.error.code).toBe('NO_SUCH_DEAD_LETTER');
    const { document } = await resendById(eventId, { n: 5 });
    expect(document).toMatchObject({ id: eventId, newEventId, outcome: 'processed', next: null });
    expect(ran).toEqual([5]);
    // It is complete: no dead letter, and nothing more to send.
    expect((await resendById(eventId, { n: 5 })).document.error.code).toBe('NO_SUCH_DEAD_LETTER');
    expect((await command('', 'why', eventId)).exitCode).toBe(0);
  });

  test('is completed by the id of the new event, also with other data', async () => {
    const { redriveInConsole, eventId, newEventId, ran, resendById } = await interrupted();
    await redriveInConsole();
    const { document } = await resendById(newEventId, { n: 6 });
    expect(document).toMatchObject({ eventId, replacedEventId: newEventId, outcome: 'processed' });
    expect(ran).toEqual([6]);
  });

  test('names the resend to repeat in why although its queue holds other messages', async () => {
    const { clock, newEventId, eventId, command, deployment, queues } = await interrupted();
    const depth = async (url: string) => ({ ...(await queues.depth(url)), arn: url, waiting: 3 });
    Object.assign(deployment, { queues: { ...queues, depth } });
    await clock.advance(16 * 60_000);
    const { verdict } = (await command('', 'why', newEventId)).document;
    expect(verdict).toMatchObject({ state: 'late', text: expect.stringContaining('3 messages waiting') });
    expect(verdict.text).toContain(`dlq resend ${source} ${eventId} --data data.json`);
  });

  test('whose outbox row has expired, too, is refused with what to do', async () => {
    const { redriveInConsole, memory, eventId, newEventId, resendById } = await interrupted();
    await redriveInConsole();
    await memory.write({ Delete: { Key: { ...outboxKeyOf(eventId) } } }); // as TTL does
    for (const id of [eventId, newEventId])
      expect((await resendById(id, { n: 5 })).document.error).toMatchObject({
        code: 'CANNOT_RESEND',
        message: expect.stringContaining('Have its producer write a correct event.'),
      });
  });

  test('is completed with --repeat-effects after the refusal for an effect that a redrive has started', async () => {
    const { table, command, resend, redriveInConsole, ran, eventId, deployment } = await rejected();
    const resendById = (...more: readonly string[]) =>
      command({ n: 5 }, 'dlq', 'resend', source, eventId, '--data', '-', ...APPLY, ...more);
    const { write } = table;
    const effects = { charge: { status: 'COMPLETED', startedAt: 1, endsBy: 2, run: 1, fence: 'w' } };
    const rejectedAgain = { schema: 1, status: 'REJECTED', fence: 'w', attempts: 1, effects };
    let isRedriven = false;
    const afterPlan: typeof write = async (action) => {
      if (!isRedriven) await write({ Put: { Item: { ...inboxKey('worker', eventId), ...rejectedAgain } } });
      isRedriven = true;
      return write(action);
    };
    Object.assign(deployment.table, { write: afterPlan });
    const refused = await resend({ n: 5 }, ...APPLY);
    expect(refused.document.error.message).toContain('--repeat-effects, and with the event id');
    await redriveInConsole();
    expect((await command('', ...REDRIVE)).document.deadLetters).toEqual([]);
    expect((await resendById()).document.error.message).toContain('charge (completed)');
    expect((await resendById('--repeat-effects')).document.outcome).toBe('processed');
    expect(ran).toEqual([5]);
  });
});

describe('a discard after an interrupted resend', () => {
  const DISCARD = ['dlq', 'discard', source, '--all'];

  test('plans to discard the event in place of the old one, and does so before it deletes the dead letter', async () => {
    const rig = await interrupted();
    const { command, letters, letterId, newEventId, rowOf, queue, drain, ran } = rig;
    const plan = await command('', ...DISCARD);
    expect(plan.document.deadLetters).toMatchObject([{ id: letterId, outcome: 'discard-replacement' }]);
    const { out } = await rig.until(runInMemory(rig, DISCARD));
    expect(unwrapped(out)).toContain(`replaced by ${newEventId}, which its consumer has not received`);
    const done = await command('', ...DISCARD, ...APPLY);
    expect(done).toMatchObject({ exitCode: 0, document: { deadLetters: [{ outcome: 'discarded' }] } });
    expect(await letters()).toEqual([]);
    expect(await rowOf(newEventId)).toMatchObject({ status: 'DISCARDED', discardedReason: APPLY[2] });
    const [letter] = queue.deadLetters();
    const { detail } = JSON.parse(letter?.body ?? '');
    queue.send(
      JSON.stringify({ ...JSON.parse(letter?.body ?? ''), detail: { ...detail, eventId: newEventId } }),
    );
    await drain();
    expect(ran).toEqual([]);
  });

  test('leaves the dead letter if a resend was interrupted after its plan', async () => {
    const { command, letters, letterId, deployment, table, ...rig } = await rejected();
    const { write } = table;
    let isFirst = true;
    const afterPlan: typeof write = async (action) => {
      if (isFirst) {
        isFirst = false;
        await rig.unsent(() => rig.resend({ n: 5 }, ...APPLY));
      }
      return write(action);
    };
    Object.assign(deployment.table, { write: afterPlan });
    const { exitCode, document } = await command('', ...DISCARD, ...APPLY);
    expect(exitCode).toBe(1);
    expect(document.deadLetters).toMatchObject([{ outcome: 'unsent' }]);
    expect(await letters()).toEqual([letterId]);
  });
});

describe('a discard while a resend completes', () => {
  test('leaves the new event, which failed and has its own dead letter, and deletes only the dead letter of the old one', async () => {
    const rig = await rejected();
    const { deployment, table, letterId, command, rowOf, letters, resend, eventId } = rig;
    await rig.unsent(() => resend({ n: -5 }, ...APPLY));
    const newEventId = resentEventId('worker', eventId, { n: -5 });
    const { write } = table;
    let isFirst = true;
    Object.assign(deployment.table, {
      write: async (action: Parameters<typeof write>[0]) => {
        if (isFirst) {
          isFirst = false;
          expect((await resend({ n: -5 }, ...APPLY)).document).toMatchObject({ outcome: 'failed-again' });
        }
        return write(action);
      },
    });
    const { document } = await command('', 'dlq', 'discard', source, letterId, ...APPLY);
    expect(document.deadLetters).toMatchObject([{ outcome: 'handled' }]);
    expect(await rowOf(newEventId)).toMatchObject({ status: 'REJECTED' });
    const left = await letters();
    expect(left).toHaveLength(1);
    expect(left).not.toContain(letterId);
    await command('', 'dlq', 'redrive', source, ...APPLY);
    expect(await letters()).toHaveLength(1);
  });
});

test('a discard leaves the dead letter of an event whose replacement a newer version has received meanwhile', async () => {
  const { deployment, table, newEventId, letterId, letters, command, memory } = await interrupted();
  const { write } = table;
  const newer = { schema: SCHEMA + 1, status: 'FAILED', fence: 'newer', attempts: 1 };
  let isFirst = true;
  Object.assign(deployment.table, {
    write: async (action: Parameters<typeof write>[0]) => {
      if (isFirst) await write({ Put: { Item: { ...inboxKey('worker', newEventId), ...newer } } });
      isFirst = false;
      return write(action);
    },
  });
  const { exitCode, document } = await command('', 'dlq', 'discard', source, letterId, ...APPLY);
  expect(exitCode).toBe(1);
  expect(document.deadLetters).toMatchObject([{ outcome: 'unreadable' }]);
  expect(await letters()).toEqual([letterId]);
  expect(memory.item(inboxKey('worker', newEventId))).toMatchObject(newer);
});

describe('a resend whose new event never ran', () => {
  test('is reported as superseded if an operator had discarded it, whose command died before it deleted the dead letter', async () => {
    const { command, letters, letterId, queues, ran, resend, unsent } = await rejected();
    await unsent(() => resend({ n: 5 }, ...APPLY));
    const { remove } = queues;
    Object.assign(queues, { remove: () => Promise.reject(new Error('The command died')) });
    await command('', 'dlq', 'discard', source, '--all', ...APPLY);
    Object.assign(queues, { remove });
    expect(await letters()).toEqual([letterId]);
    expect(await resend({ n: 5 }, ...APPLY)).toMatchObject({
      exitCode: 1,
      document: { outcome: 'superseded' },
    });
    expect(ran).toEqual([]);
  });

  test('is reported as superseded if an operator discards it before it is received', async () => {
    const { eventId, queues, ran, resend, deployment } = await rejected();
    const newEventId = resentEventId('worker', eventId, { n: 5 });
    const { send } = queues;
    Object.assign(queues, {
      send: async (url: string, body: string) => {
        const decision = { consumer: 'worker', eventId: newEventId, by: 'grace', reason: 'not needed' };
        await discardMessage(deployment, decision);
        return send(url, body);
      },
    });
    expect(await resend({ n: 5 }, ...APPLY)).toMatchObject({
      exitCode: 1,
      document: { outcome: 'superseded' },
    });
    expect(ran).toEqual([]);
  });
});

test('a discard leaves a DEAD event whose row a newer version has written, and reports it as unreadable', async () => {
  const { memory, eventId, command, clock } = await rejected();
  const row = {
    ...memory.item(outboxKeyOf(eventId)),
    schema: SCHEMA + 1,
    status: 'DEAD',
    deadAt: clock.now(),
  };
  await memory.write({ Put: { Item: { ...row, ...outboxKeyOf(eventId) } } });
  const pointer = { schema: 1, deadAt: clock.now(), type: 't', lastError: 'e', fingerprint: 'f' };
  await memory.write({ Put: { Item: { ...deadKey(eventIdShard(eventId), eventId), ...pointer } } });
  const { exitCode, document } = await command('', 'dlq', 'discard', 'dead', '--all', ...APPLY);
  expect(exitCode).toBe(1);
  expect(document.deadLetters).toMatchObject([{ outcome: 'unreadable' }]);
  expect(memory.item(outboxKeyOf(eventId))).toMatchObject({ status: 'DEAD' });
});
