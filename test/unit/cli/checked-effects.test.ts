import { describe, expect, test } from 'vitest';
import { effectsDigest } from '../../../lambdas/runtime/inbox/started-effects.ts';
import { resolveMessage } from '../../../lambdas/runtime/operations/message-operations.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import type { Table } from '../../../lambdas/runtime/store/table.ts';
import { plansRig } from './support/plans-rig.ts';
import { APPLY, rejected, source } from './support/rejected-event.ts';

/** A rejected message whose charge has completed, and what a worker may still do to its effects. */
async function charged() {
  const rig = await rejected({ effect: true });
  const key = inboxKey('worker', rig.eventId);
  /** An effect runs after the plan was shown. */
  const runs = (change: object, name = 'charge') => {
    const row = rig.memory.item(key);
    const effects = { ...(row?.effects as Record<string, object>) };
    const effect = { ...effects.charge, ...change };
    return rig.memory.write({
      Put: { Item: { ...row, ...key, effects: { ...effects, [name]: effect } } as never },
    });
  };
  return { ...rig, runs, resolve: ['messages', 'resolve', 'worker', rig.eventId, ...APPLY] };
}

describe('a check of effects', () => {
  const changes: readonly [string, object, string][] = [
    ['another effect has started', { startedAt: 5 }, 'ship'],
    ['the same effect has run again', { startedAt: 5 }, 'charge'],
  ];

  test.each(changes)('does not cover them once %s', async (_what, change, name) => {
    const { command, runs, letterId, letters, resolve, memory, eventId } = await charged();
    const plan = await command('', 'dlq', 'discard', source, letterId, '--effects-checked');
    const [shown] = plan.document.deadLetters;
    expect(shown).toMatchObject({ outcome: 'discard' });
    const option = `--effects-checked=${effectsDigest(shown.effects)}`;
    await runs(change, name);
    const discarded = await command('', 'dlq', 'discard', source, letterId, option, ...APPLY);
    expect(discarded.document.deadLetters).toMatchObject([{ outcome: 'effects-unchecked' }]);
    expect(await letters()).toEqual([letterId]);
    const resolved = await command('', ...resolve, option);
    expect(resolved).toMatchObject({ exitCode: 2, document: { error: { code: 'EFFECTS_UNCHECKED' } } });
    expect(memory.item(inboxKey('worker', eventId))).toMatchObject({ status: 'REJECTED' });
  });

  test('covers those that its plan has shown', async () => {
    const { command, resolve, letterId } = await charged();
    const plan = await command('', 'dlq', 'discard', source, letterId);
    const option = `--effects-checked=${effectsDigest(plan.document.deadLetters[0].effects)}`;
    expect((await command('', ...resolve, option)).document).toMatchObject({ status: 'resolved' });
  });

  test('is bound by the command to what it has read: an effect that starts before its write is not checked', async () => {
    const { command, resolve, runs, table, eventId, rowOf } = await charged();
    const { transact } = table;
    let started = false;
    const starts: Table['transact'] = async (...args) => {
      if (!started) await runs({ startedAt: 5 }, 'ship');
      started = true;
      return transact(...args);
    };
    Object.assign(table, { transact: starts });
    const refused = await command('', ...resolve, '--effects-checked');
    expect(refused).toMatchObject({ exitCode: 2, document: { error: { code: 'EFFECTS_UNCHECKED' } } });
    expect(await rowOf(eventId)).toMatchObject({ status: 'REJECTED' });
  });

  test('without a digest covers what is read at the write', async () => {
    const { table, clock, eventId } = await charged();
    const note = { consumer: 'worker', eventId, by: 'ada', reason: 'by phone' };
    expect(await resolveMessage({ table, clock }, { ...note, effectsChecked: true })).toEqual({
      status: 'resolved',
    });
  });
});

test('a discard on the page leaves a message whose effects are others than the page has shown', async () => {
  const rig = plansRig({ charges: true });
  const [id = ''] = await rig.dead('n is not for us', 7);
  const plan = await rig.plans.make({ kind: 'discard', source, ids: [id], effectsChecked: true });
  expect(plan).toMatchObject({ count: 1 });
  const [item] = rig.memory
    .items()
    .filter(({ PK, SK }) => String(PK).startsWith('INBOX#') && SK === 'MESSAGE');
  const { charge } = (item?.effects ?? {}) as { readonly charge?: object };
  const effects = { charge, ship: { ...charge, startedAt: 5 } };
  await rig.memory.write({ Put: { Item: { ...item, effects } as never } });
  const confirmed = { reason: 'charged by phone', confirmation: plan.confirmation };
  const run = await rig.end(rig.plans.apply(plan.id, confirmed));
  expect(run).toMatchObject({ document: { deadLetters: [{ outcome: 'changed' }] } });
});
