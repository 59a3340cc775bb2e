import { describe, expect, test } from 'vitest';
import type { Run } from '../../../../../cli/page/server/protocol.ts';
import { runQuietly } from '../../../../../cli/page/server/quiet-run.ts';
import { reportOf } from '../../../../../cli/terminal/terminal.ts';
import { discardMessage } from '../../../../../lambdas/runtime/operations/message-operations.ts';
import { ThingHappened } from '../../../../support/runtime-rig.ts';
import { plansRig } from '../../support/plans-rig.ts';

const source = 'consumer:worker';
const reason = 'the bank is back';

const refusal = (code: string) => expect.objectContaining({ code });

function outcomes({ document }: Run): Record<string, string> {
  const { deadLetters } = document as { deadLetters: { id: string; outcome: string }[] };
  return Object.fromEntries(deadLetters.map(({ id, outcome }) => [id, outcome]));
}

async function threeOfTwoCauses() {
  const rig = plansRig();
  const bank = await rig.dead('the bank is down', 1, 2, 3);
  const other = await rig.dead('no such thing', 4);
  rig.rejects.clear();
  return { ...rig, bank, other };
}

describe('a plan of the page', () => {
  test('a plan of one cause lists exactly its dead letters, and the command that does the same', async () => {
    const { plans, bank } = await threeOfTwoCauses();
    const plan = await plans.make({
      kind: 'redrive',
      source,
      cause: 'worker POISON_MESSAGE: the bank is down',
    });
    expect(plan).toMatchObject({ kind: 'redrive', count: 3, confirmation: '3' });
    const { deadLetters } = plan.document as { deadLetters: { id: string; verdict: string }[] };
    const ids = deadLetters.map(({ id }) => id);
    expect(ids.toSorted()).toEqual(bank.toSorted());
    expect(deadLetters.map(({ verdict }) => verdict)).toEqual(['runs', 'runs', 'runs']);
    expect(plan.command).toBe(
      `npx cdk-mailroom dlq redrive consumer:worker ${ids.join(' ')} --apply --reason '…' --stage dev`,
    );
  });

  test('a plan of a cause selects no dead letter whose longer cause contains it', async () => {
    const rig = plansRig();
    const [short] = await rig.dead('no such thing', 1);
    await rig.dead('no such thing, twice', 2);
    const plan = await rig.plans.make({
      kind: 'discard',
      source,
      cause: 'worker POISON_MESSAGE: no such thing',
    });
    const { deadLetters } = plan.document as { deadLetters: { id: string }[] };
    expect(deadLetters.map(({ id }) => id)).toEqual([short]);
  });

  test('a plan of a cause that no dead letter has plans nothing, even if longer causes contain it', async () => {
    const rig = plansRig();
    await rig.dead('no such thing, twice', 1);
    const cause = 'worker POISON_MESSAGE: no such thing';
    const plan = await rig.plans.make({ kind: 'discard', source, cause });
    expect(plan).toMatchObject({ count: 0, document: { deadLetters: [] } });
  });

  test('waits for the plan before it: both would receive the dead letters, and hide them from each other', async () => {
    const { plans, queues } = await threeOfTwoCauses();
    // As SQS does: what one reader has received, no other one receives until it is shown again.
    const hidden = new Set<string>();
    const { receive, show } = queues;
    Object.assign(queues, {
      receive: async (...given: Parameters<typeof receive>) => {
        const found = (await receive(...given)).filter(({ messageId }) => !hidden.has(messageId));
        for (const { messageId } of found) hidden.add(messageId);
        return found;
      },
      show: async (...given: Parameters<typeof show>) => {
        hidden.delete(given[1].messageId);
        await show(...given);
      },
    });
    const made = await Promise.all([1, 2, 3].map(() => plans.make({ kind: 'redrive', source })));
    expect(made.map(({ count }) => count)).toEqual([4, 4, 4]);
  });

  test('redrives its dead letters with progress, announces each state, and cannot be applied twice', async () => {
    const { plans, bank, ran, announced, end, other } = await threeOfTwoCauses();
    const plan = await plans.make({ kind: 'redrive', source, ids: bank });
    const run = plans.apply(plan.id, { reason, confirmation: '3' });
    expect(run).toMatchObject({ state: 'running', command: expect.stringContaining(`--reason '${reason}'`) });
    expect(() => plans.apply(plan.id, { reason, confirmation: '3' })).toThrowError(refusal('NO_SUCH_PLAN'));
    const over = await end(run);
    expect(over).toMatchObject({ state: 'done', exitCode: 0 });
    expect(outcomes(over)).toEqual(Object.fromEntries(bank.map((id) => [id, 'processed'])));
    expect(ran.sort()).toEqual([1, 2, 3]);
    const lines = announced.map(({ progress }) => progress);
    expect(lines).toContain('Step 1 of 2: 1 of 1 redriven');
    expect(lines).toContain('Step 2 of 2: 2 of 2 redriven');
    const steps = new Set(announced.map(({ reached: { step, steps } }) => `${step} ${steps}`));
    expect([...steps]).toEqual(['undefined undefined', '1 2', '2 2']);
    expect(over.reached).toEqual({ step: 2, steps: 2, done: 3, of: 3 });
    expect(plans.runs()).toEqual([over]);
    expect(other).toHaveLength(1);
  });

  test('leaves alone and reports what has changed since', async () => {
    const { plans, bank, ran, table, remove, end, clock, queue } = await threeOfTwoCauses();
    const plan = await plans.make({ kind: 'redrive', source, ids: bank });
    const [first = '', second = '', third = ''] = bank;
    const discarded = queue.deadLetters().find(({ messageId }) => messageId === second)?.body ?? '';
    await discardMessage(
      { table, clock },
      {
        consumer: 'worker',
        eventId: JSON.parse(discarded).detail.eventId,
        reason: 'done by phone',
        by: 'grace',
      },
    );
    remove(third);
    const over = await end(plans.apply(plan.id, { reason, confirmation: '3' }));
    expect(over).toMatchObject({ state: 'done', exitCode: 1 });
    expect(outcomes(over)).toEqual({ [first]: 'processed', [second]: 'changed', [third]: 'changed' });
    expect(JSON.stringify(over.document)).toContain('It was runs in the plan and is handled now.');
    expect(ran).toEqual([1]);
  });

  test('expires after two minutes', async () => {
    const { plans, bank, clock } = await threeOfTwoCauses();
    const plan = await plans.make({ kind: 'redrive', source, ids: bank });
    expect(plan.expiresAt).toBe(clock.now() + 120_000);
    await clock.advance(120_000);
    expect(() => plans.apply(plan.id, { reason, confirmation: '3' })).toThrowError(refusal('PLAN_EXPIRED'));
  });

  test.each([
    ['a typed count that is wrong', { reason, confirmation: '2' }, 'WRONG_CONFIRMATION'],
    ['no reason', { confirmation: '3' }, 'BAD_ARGUMENT'],
    ['a placeholder in place of a reason', { reason: '…', confirmation: '3' }, 'BAD_ARGUMENT'],
    ['a request that is not an object', 'apply', 'BAD_ARGUMENT'],
  ])('is refused with %s, and can still be applied', async (_name, request, code) => {
    const { plans, bank, end } = await threeOfTwoCauses();
    const plan = await plans.make({ kind: 'redrive', source, ids: bank });
    expect(() => plans.apply(plan.id, request)).toThrowError(refusal(code));
    expect(await end(plans.apply(plan.id, { reason, confirmation: '3' }))).toMatchObject({ exitCode: 0 });
  });

  test('is not guessed: an unknown id is refused', () => {
    const { plans } = plansRig();
    const id = '00000000-0000-4000-8000-000000000000';
    expect(() => plans.apply(id, { reason, confirmation: '3' })).toThrowError(refusal('NO_SUCH_PLAN'));
  });

  test('a plan of a discard asks for the name of the stack, and discards nothing else', async () => {
    const { plans, bank, other, end, queues } = await threeOfTwoCauses();
    const plan = await plans.make({ kind: 'discard', source, ids: bank });
    expect(plan).toMatchObject({ count: 3, confirmation: 'mailroom-dev' });
    expect(() => plans.apply(plan.id, { reason, confirmation: '3' })).toThrowError(
      refusal('WRONG_CONFIRMATION'),
    );
    const over = await end(plans.apply(plan.id, { reason, confirmation: 'mailroom-dev' }));
    expect(outcomes(over)).toEqual(Object.fromEntries(bank.map((id) => [id, 'discarded'])));
    const left = await queues.receive('dead-letters', { limit: 10 });
    expect(left.map(({ messageId }) => messageId)).toEqual(other);
  });

  test('a plan of a rejection commits what the rejected function returns; completed effects need no check', async () => {
    const events = [ThingHappened.create({ aggregateId: 'thing-1', data: { n: 7 } })];
    const rig = plansRig({ charges: true, options: { rejected: async () => ({ events }) } });
    const [id = ''] = await rig.dead('the bank is down', 1);
    const plan = await rig.plans.make({ kind: 'discard', source, ids: [id], reject: true });
    expect(plan).toMatchObject({
      ...{ count: 1, confirmation: 'mailroom-dev', effects: [] },
      document: { deadLetters: [{ id, outcome: 'reject' }] },
    });
    expect(plan.command).toContain(`dlq discard ${source} ${id} --reject --apply`);
    const over = await rig.end(rig.plans.apply(plan.id, { reason, confirmation: 'mailroom-dev' }));
    expect(over).toMatchObject({ state: 'done', exitCode: 0 });
    expect(over.command).toContain(' --reject ');
    expect(outcomes(over)).toEqual({ [id]: 'rejected' });
    expect(await rig.queues.receive('dead-letters', { limit: 10 })).toEqual([]);
    await rig.publish();
    await rig.drain();
    expect(rig.ran).toEqual([7]);
  });

  test('a plan of a rejection leaves a message whose handler has no rejected function, and says so', async () => {
    const { plans, bank } = await threeOfTwoCauses();
    const plan = await plans.make({ kind: 'discard', source, ids: bank, reject: true });
    const { deadLetters } = plan.document as { deadLetters: unknown[] };
    const message = expect.stringContaining('has no rejected function');
    expect(plan.count).toBe(0);
    expect(deadLetters).toEqual(
      bank.map(() => expect.objectContaining({ outcome: 'not-rejectable', message })),
    );
  });

  test.each([
    ['an option of a discard that is not a boolean', { kind: 'discard', source, cause: 'x', reject: 'yes' }],
    ['all dead letters of a source', { kind: 'discard', source }],
    ['an option in place of an id', { kind: 'discard', source, ids: ['--all-of-them'] }],
    ['an empty cause, which every cause contains', { kind: 'discard', source, cause: '' }],
    ['an unknown kind', { kind: 'purge', source }],
    ['a source of another type', { kind: 'redrive', source: 1 }],
    ['a range that is not a duration', { kind: 'repair', since: '--repair' }],
  ])('is refused for %s', async (_name, request) => {
    const { plans } = await threeOfTwoCauses();
    await expect(plans.make(request)).rejects.toThrowError(refusal('BAD_ARGUMENT'));
  });

  test('a plan of a resend asks for the name of the consumer, and sends the new event once', async () => {
    const { plans, bank, ran, end, sent } = await threeOfTwoCauses();
    const [id = ''] = bank;
    const request = { kind: 'resend', source, id, data: { n: 7 } };
    const plan = await plans.make(request);
    expect(plan).toMatchObject({ count: 1, confirmation: 'worker', document: { verdict: 'runs' } });
    expect(plan.command).toContain(`dlq resend ${source} ${id} --data data.json --apply`);
    expect(() => plans.apply(plan.id, { reason, confirmation: '1' })).toThrowError(
      refusal('WRONG_CONFIRMATION'),
    );
    const other = await plans.make({ ...request, data: { n: 8 } });
    const over = await end(plans.apply(plan.id, { reason, confirmation: 'worker' }));
    expect(over).toMatchObject({ state: 'done', exitCode: 0, document: { outcome: 'processed' } });
    expect(over.progress).toBe('Done: 1 of 1');
    expect(ran).toEqual([7]);
    // The plan of other data was made before, but its event would run in addition.
    const late = await end(plans.apply(other.id, { reason, confirmation: 'worker' }));
    expect(late).toMatchObject({ state: 'failed', error: { code: 'ALREADY_RESENT' } });
    expect(sent).toHaveLength(1);
    await expect(plans.make({ ...request, data: { n: 'nine' } })).rejects.toThrowError(
      refusal('ALREADY_RESENT'),
    );
  });

  test('carries the refusals of the command', async () => {
    const { plans } = await threeOfTwoCauses();
    await expect(plans.make({ kind: 'redrive', source: 'consumer:other' })).rejects.toThrowError(
      refusal('NO_SUCH_SOURCE'),
    );
    const ids = ['00000000-0000-4000-8000-000000000000'];
    await expect(plans.make({ kind: 'redrive', source, ids })).rejects.toThrowError(
      refusal('NO_SUCH_DEAD_LETTER'),
    );
  });

  test('a plan that changes nothing cannot be applied', async () => {
    const rig = plansRig();
    const plan = await rig.plans.make({ kind: 'redrive', source });
    expect(plan.count).toBe(0);
    expect(() => rig.plans.apply(plan.id, { reason, confirmation: '0' })).toThrowError(
      refusal('NOTHING_PLANNED'),
    );
  });

  test('takes a thousand dead letters', async () => {
    const rig = plansRig();
    const ids = Array.from({ length: 1_000 }, (_, n) => rig.addDead(n));
    const plan = await rig.plans.make({ kind: 'discard', source, ids });
    expect(plan.count).toBe(1_000);
    const over = await rig.end(rig.plans.apply(plan.id, { reason, confirmation: 'mailroom-dev' }));
    expect(over).toMatchObject({ state: 'done', exitCode: 0, progress: '1000 of 1000 discarded' });
    expect(over.reached).toEqual({ done: 1_000, of: 1_000 });
  });

  test('a change of a read-only page is refused', async () => {
    const { plans } = plansRig({ allowsChanges: false });
    await expect(plans.make({ kind: 'redrive', source })).rejects.toThrowError(refusal('READ_ONLY'));
    expect(() => plans.apply('any', { reason, confirmation: '1' })).toThrowError(refusal('READ_ONLY'));
  });
});

describe('a run of the page', () => {
  test('excludes another one of the same source, which names it, and not one of another source', async () => {
    const { plans, bank, other, end } = await threeOfTwoCauses();
    const first = await plans.make({ kind: 'redrive', source, ids: bank });
    const second = await plans.make({ kind: 'discard', source, ids: other });
    const run = plans.apply(first.id, { reason, confirmation: '3' });
    const apply = () => plans.apply(second.id, { reason, confirmation: 'mailroom-dev' });
    expect(apply).toThrowError(refusal('ALREADY_RUNNING'));
    expect(apply).toThrow(run.id);
    await end(run);
    expect(await end(apply())).toMatchObject({ state: 'done' });
  });

  test('stops as with Ctrl-C: the dead letters that were not redriven stay', async () => {
    const { plans, bank, end, queues } = await threeOfTwoCauses();
    const plan = await plans.make({ kind: 'redrive', source, ids: bank });
    const run = plans.apply(plan.id, { reason, confirmation: '3' });
    expect(plans.stop(run.id)).toMatchObject({ id: run.id });
    expect(await end(run)).toMatchObject({ state: 'stopped', exitCode: 130 });
    expect(await queues.receive('dead-letters', { limit: 10 })).toHaveLength(4);
    expect(() => plans.stop('another')).toThrowError(refusal('NO_SUCH_RUN'));
  });

  test('keeps no credentials that AWS quotes in what the command says', async () => {
    const { deployment } = plansRig();
    const { notes } = await runQuietly(deployment, async ({ terminal }) => {
      terminal.say('The signature of ASIAIOSFODNN7EXAMPLE does not match');
      return reportOf({}, '', String);
    });
    expect(notes).toEqual(['The signature of … does not match']);
  });
});
