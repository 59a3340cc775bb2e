import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { z } from 'zod/mini';
import { defineEvent } from '../../../lambdas/runtime/index.ts';
import { deadKey, failedKey, inboxKey, rejectedKey } from '../../../lambdas/runtime/store/keys.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { handmadeMailroom, SMALL_SOURCE } from '../support/handmade-mailroom.ts';
import { mailroomAt } from '../support/mailroom.ts';

vi.setConfig({ testTimeout: 300_000 });

const Sold = defineEvent({
  source: SMALL_SOURCE,
  type: 'Sold',
  version: 1,
  aggregateType: 'Sale',
  schema: z.object({ sale: z.string() }),
});

/** No other test uses this region. */
const REGION = 'eu-north-1';

let small: Awaited<ReturnType<typeof handmadeMailroom>>;

const run = (...argv: string[]) =>
  mailroomAt(inject('endpoint'), ...argv, '--region', REGION, '--stack', small.stack);

/** A published event, and its inbox row, written by hand. */
async function sold(row: object | undefined): Promise<string> {
  const [envelope] = await small.publish(Sold.create({ aggregateId: 'sale-1', data: { sale: 'sale-1' } }));
  const eventId = envelope?.eventId ?? '';
  if (row !== undefined)
    await small.table.write({ Put: { Item: { ...inboxKey('ledger', eventId), ...row } } });
  return eventId;
}

beforeAll(async () => {
  small = await handmadeMailroom(inject('endpoint'), REGION, ['ledger'], ['Sold']);
});

afterAll(() => small.remove());

describe('rows that were changed by hand, or that a newer version wrote,', () => {
  test.each([
    ['without a status', {}, 'it has no "status"'],
    ['with an unknown status', { status: 'PARKED' }, 'its "status" is "PARKED"'],
    ['of a newer schema', { status: 'PROCESSED', schema: 2 }, 'its "schema" is 2'],
    ['with a time that is not whole', { status: 'FAILED', retryAt: 1.5 }, 'its "retryAt" is not a time'],
  ])('%s, are called unreadable by why and the audit', async (_what, row, problem) => {
    const eventId = await sold(row);
    const why = await run('why', eventId, '--json');
    expect(why.code, why.err).toBe(1);
    const { verdict, events } = why.json();
    expect(verdict).toMatchObject({ state: 'unreadable', consumer: 'ledger' });
    expect(verdict.text).toContain(problem);
    expect(events[0].consumers).toEqual({ ledger: 'UNREADABLE' });

    const people = await run('why', eventId, '--story');
    expect(unwrapped(people.out)).not.toContain('processed by every consumer');
    expect(unwrapped(people.out)).toContain(`its row cannot be read: ${problem}`);

    const audit = await run('audit', '--json');
    expect(audit.code).toBe(1);
    expect(audit.json().unreadableRows).toContainEqual({
      eventId,
      consumer: 'ledger',
      problem: expect.stringContaining(problem),
    });
    expect(unwrapped((await run('audit')).out)).toContain(`${eventId}, inbox of ledger: ${problem}`);
  });

  test('messages resolve needs --force for an unreadable row', async () => {
    const eventId = await sold({ status: 'PARKED' });
    const resolve = ['messages', 'resolve', 'ledger', eventId, '--reason', 'done by hand'];
    const refused = await run(...resolve);
    expect(refused.code).toBe(2);
    expect(unwrapped(refused.err)).toMatch(/UNREADABLE_ROW: .*its "status" is "PARKED"/);
    const forced = [...resolve, '--force', '--apply'];
    expect(unwrapped((await run(...forced)).err)).toMatch(/EFFECTS_UNCHECKED: .*cannot be read/);
    expect((await run(...forced, '--effects-checked')).code).toBe(0);
    expect(await small.table.get(inboxKey('ledger', eventId))).toMatchObject({ status: 'PROCESSED' });
  });

  test('lists show unreadable rows', async () => {
    const eventId = await sold({ status: 'PARKED' });
    const put = (Item: object) => small.table.write({ Put: { Item: { ...Item } } });
    await put({ ...failedKey('ledger', eventId), schema: 1 });
    await put({ ...rejectedKey('ledger', 'some'), schema: 2 });
    await put({ ...deadKey(0, 'some'), schema: 1, deadAt: 'long ago' });
    const messages = (await run('messages', 'list', '--json')).json().messages;
    expect(messages.map(({ status, at }: { status: string; at: null }) => [status, at])).toEqual([
      ['UNREADABLE', null],
      ['UNREADABLE', null],
    ]);
    for (const argv of [
      ['messages', 'list'],
      ['messages', 'list', '--by', 'cause'],
      ['dlq', 'list', 'dead', '--by', 'cause'],
      ['operations'],
    ]) {
      const listed = await run(...argv);
      expect({ argv, code: listed.code, err: listed.err }).toEqual({ argv, code: 0, err: '' });
    }
    expect(unwrapped((await run('dlq', 'list', 'dead')).out)).toContain('its "deadAt" is not a time');
    const plan = await run('dlq', 'redrive', 'dead', '--json');
    expect(plan.json().deadLetters).toMatchObject([{ id: 'some', verdict: 'unreadable' }]);
  });
});

describe('a message that is PROCESSING', () => {
  test('messages resolve accepts a PROCESSING message without a lease', async () => {
    const eventId = await sold({ status: 'PROCESSING', schema: 1, fence: 'f', attempts: 1 });
    const argv = ['messages', 'resolve', 'ledger', eventId, '--reason', 'done by hand', '--json'];
    const resolved = await run(...argv, '--apply');
    expect(resolved.json()).toMatchObject({ status: 'resolved' });
  });

  test('messages resolve on a laptop whose clock is ahead refuses a leased message and names the clock', async () => {
    const leaseUntil = Date.now() + 600_000;
    const eventId = await sold({ status: 'PROCESSING', schema: 1, fence: 'f', attempts: 1, leaseUntil });
    const { now } = Date;
    vi.spyOn(Date, 'now').mockImplementation(() => now() + 3_600_000);
    const refused = await run('messages', 'resolve', 'ledger', eventId, '--reason', 'done by hand');
    const why = await run('why', eventId, '--json');
    vi.restoreAllMocks();
    expect(refused.code).toBe(2);
    expect(unwrapped(refused.err)).toMatch(/clock is at least (1 h|59 min).* ahead of AWS's/);
    expect(refused.err).toContain('MESSAGE_LEASED');
    expect(why.json().verdict.state).toBe('processing');
    expect(why.err, 'its own document').toBe('');
  });
});
