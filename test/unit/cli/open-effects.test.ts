import { describe, expect, test } from 'vitest';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { plansRig } from './support/plans-rig.ts';
import { APPLY, rejected, source } from './support/rejected-event.ts';
import { runInMemory } from './support/run-in-memory.ts';

/** A Mailroom with a rejected message whose charge has completed. */
async function charged() {
  const rig = await rejected({ effect: true });
  const key = `worker:${rig.eventId}:charge`;
  const run = (...argv: string[]) => rig.until(runInMemory(rig, argv));
  const text = async (...argv: string[]) => unwrapped((await run(...argv)).out);
  return { ...rig, key, run, text };
}

describe('a rejected message whose effect has completed', () => {
  test('is shown with the effect and its key by why, dlq list, dlq show and every plan', async () => {
    const { text, eventId, letterId, key } = await charged();
    for (const argv of [
      ['why', eventId],
      ['dlq', 'list', source],
      ['dlq', 'show', source, letterId],
      ['dlq', 'redrive', source],
      ['dlq', 'discard', source, letterId],
      ['messages', 'resolve', 'worker', eventId],
    ])
      expect(await text(...argv), argv.join(' ')).toMatch(
        new RegExp(`charge completed at .*its idempotency key is ${key}`),
      );
  });

  test('is discarded only once the effects are checked, by the command that the plan prints', async () => {
    const { command, text, letterId, letters } = await charged();
    const refused = await command('', 'dlq', 'discard', source, letterId, ...APPLY);
    expect(refused.exitCode).toBe(1);
    expect(refused.document).toMatchObject({ deadLetters: [{ outcome: 'effects-unchecked' }] });
    expect(await letters()).toEqual([letterId]);
    const plan = await text('dlq', 'discard', source, letterId);
    expect(plan).toMatch(
      new RegExp(
        `add --effects-checked=[0-9a-f]{12} once you know: npx cdk-mailroom dlq discard ${source} ${letterId} --apply`,
      ),
    );
    const checked = await text('dlq', 'discard', source, letterId, '--effects-checked');
    expect(checked).toMatch(
      new RegExp(
        `To discard them: npx cdk-mailroom dlq discard ${source} ${letterId} --effects-checked=[0-9a-f]{12} --apply`,
      ),
    );
    const made = await command('', 'dlq', 'discard', source, letterId, '--effects-checked', ...APPLY);
    expect(made).toMatchObject({ exitCode: 0, document: { deadLetters: [{ outcome: 'discarded' }] } });
    expect(await letters()).toEqual([]);
  });

  test('is resolved only once the effects are checked, by force neither', async () => {
    const { run, text, eventId, key } = await charged();
    for (const options of [[], ['--force']]) {
      const { code, err } = await run('messages', 'resolve', 'worker', eventId, ...options, ...APPLY);
      expect(code).toBe(2);
      expect(unwrapped(err)).toContain('EFFECTS_UNCHECKED');
      expect(unwrapped(err)).toContain(key);
    }
    const plan = await text('messages', 'resolve', 'worker', eventId);
    expect(plan).toMatch(
      new RegExp(
        `add --effects-checked=[0-9a-f]{12} once you know: npx cdk-mailroom messages resolve worker ${eventId} --apply`,
      ),
    );
    const checked = await text('messages', 'resolve', 'worker', eventId, '--effects-checked');
    expect(checked).toMatch(
      new RegExp(
        `To resolve it: npx cdk-mailroom messages resolve worker ${eventId} --effects-checked=[0-9a-f]{12} --apply`,
      ),
    );
    const made = await run('messages', 'resolve', 'worker', eventId, '--effects-checked', ...APPLY);
    expect(made.code).toBe(0);
    expect(await text('why', eventId)).not.toContain('charge');
  });
});

describe('a discard on the page', () => {
  const effects = [expect.stringMatching(/^effect charge completed at .*:charge$/)];

  test('names the effects, and discards nothing until they are checked', async () => {
    const rig = plansRig({ charges: true });
    const [id = ''] = await rig.dead('n is not for us', 7);
    const request = { kind: 'discard', source, ids: [id] };
    const unchecked = await rig.plans.make(request);
    expect(unchecked).toMatchObject({
      count: 0,
      effects,
      document: { deadLetters: [{ outcome: 'effects-unchecked' }] },
    });
    expect(unchecked.command).toContain(`dlq discard ${source} ${id} --apply`);
    const confirmed = { reason: 'charged by phone', confirmation: unchecked.confirmation };
    expect(() => rig.plans.apply(unchecked.id, confirmed)).toThrow(/changes nothing/);
    const plan = await rig.plans.make({ ...request, effectsChecked: true });
    expect(plan).toMatchObject({ count: 1, effects });
    expect(plan.command).toMatch(/ --effects-checked=[0-9a-f]{12} /);
    const run = await rig.end(rig.plans.apply(plan.id, confirmed));
    expect(run).toMatchObject({ state: 'done', document: { deadLetters: [{ outcome: 'discarded' }] } });
  });

  test('leaves a message whose row was deleted by hand until its effects are checked', async () => {
    const rig = plansRig();
    const [id = ''] = await rig.dead('n is not for us', 7);
    const [letter] = rig.queue.deadLetters();
    const { eventId } = JSON.parse(letter?.body ?? '').detail;
    rig.memory.write({ Delete: { Key: { ...inboxKey('worker', eventId) } } });
    const request = { kind: 'discard', source, ids: [id] };
    const unchecked = await rig.plans.make(request);
    expect(unchecked).toMatchObject({ count: 0, document: { deadLetters: [{ outcome: 'row-deleted' }] } });
    expect(await rig.plans.make({ ...request, effectsChecked: true })).toMatchObject({ count: 1 });
  });
});
