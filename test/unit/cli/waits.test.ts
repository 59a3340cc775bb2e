import { describe, expect, test } from 'vitest';
import { DAY_MS, MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { publishWait } from '../../../lambdas/runtime/operations/publish-wait.ts';
import { mintEventId, outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { directory, mailroomInMemory } from './support/mailroom-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';
import { commit, fine } from './support/why-rig.ts';

const NOW = Date.UTC(2026, 0, 1, 12);
const LEASED_UNTIL = Date.UTC(2031, 0, 1);

/** A PENDING row of an event that was committed before a time, or is dated after it. */
function row(ageMs: number, attributes: object = {}) {
  const bornAt = NOW - ageMs;
  const key = outboxKeyOf(mintEventId(bornAt, 4, (length) => new Uint8Array(length).fill(3)));
  const event = { source: 'things', type: 'ThingHappened', envelope: '{}', attempts: 0 };
  return {
    ...key,
    schema: 1,
    status: 'PENDING' as const,
    leaseUntil: bornAt + 30_000,
    ...event,
    ...attributes,
  };
}

describe('a PENDING event waits', () => {
  test.each([
    ['new', false, row(10_000)],
    ['due', false, row(4 * MINUTE_MS)],
    ['due', true, row(6 * MINUTE_MS)],
    ['due', false, row(DAY_MS, { requeuedAt: NOW - MINUTE_MS })],
    ['leased', true, row(6 * MINUTE_MS, { leaseUntil: NOW + 60_000 })],
    ['retry', false, row(4 * MINUTE_MS, { leaseUntil: NOW + 60_000, lastError: 'refused' })],
    ['retry', true, row(60 * MINUTE_MS, { leaseUntil: NOW + 15 * MINUTE_MS, lastError: 'refused' })],
    ['held', true, row(10_000, { leaseUntil: LEASED_UNTIL })],
    ['held', true, row(60 * MINUTE_MS, { leaseUntil: LEASED_UNTIL, lastError: 'refused' })],
    ['ahead', true, row(-40 * MINUTE_MS)],
    ['scheduled', false, row(-DAY_MS, { dueAt: NOW + DAY_MS, leaseUntil: NOW + DAY_MS })],
    // At the limit of a producer whose clock is half an hour ahead.
    ['scheduled', false, row(-366 * DAY_MS - 30 * MINUTE_MS, { dueAt: NOW + 366 * DAY_MS + 30 * MINUTE_MS })],
    ['too-late', true, row(-400 * DAY_MS, { dueAt: NOW + 400 * DAY_MS })],
    ['undeclared', false, row(DAY_MS, { source: 'strangers' })],
    ['unreadable', false, { ...row(DAY_MS), unreadable: 'its "schema" is 2' }],
  ])('%s, stuck: %s', (because, isStuck, event) => {
    expect(publishWait(event, { now: NOW, sources: ['things'] })).toMatchObject({ because, isStuck });
  });

  test('in a shard that the sweep does not read, unless it is in a database, which has no shards', () => {
    const event = row(MINUTE_MS);
    const shard = Number.parseInt(event.PK.split('#')[2] ?? '', 10);
    expect(publishWait(event, { now: NOW, sweptShards: shard })).toMatchObject({
      because: 'unswept',
      isStuck: true,
    });
    expect(publishWait(event, { now: NOW, sweptShards: shard + 1 })).toMatchObject({ because: 'due' });
    expect(publishWait({ ...event, store: 'postgres' }, { now: NOW, sweptShards: shard })).toMatchObject({
      because: 'due',
    });
  });
});

/** A Mailroom whose relays have stopped, with one event, and the documents of commands. */
async function waiting(attributes: object, sources?: readonly string[]) {
  const mailroom = mailroomInMemory([fine]);
  const deployed = { ...directory, mailroom: { ...directory.mailroom, ...(sources && { sources }) } };
  const eventId = await commit(mailroom);
  const key = outboxKeyOf(eventId);
  await mailroom.clock.advance(20 * MINUTE_MS);
  await mailroom.memory.write({ Put: { Item: { ...mailroom.memory.item(key), ...attributes } } });
  const run = (...argv: readonly string[]) => runInMemory({ ...mailroom, directory: deployed }, argv);
  const json = async (...argv: readonly string[]) => JSON.parse((await run(...argv, '--json')).out);
  return { ...mailroom, eventId, run, json };
}

describe('status, why, events list and sweep agree', () => {
  test('on an event under a lease that no relay takes: no sweep is printed', async () => {
    const { eventId, json, run } = await waiting({ leaseUntil: LEASED_UNTIL });
    const repair = 'npx cdk-mailroom audit --since 1h --repair --stage dev';
    const { findings, outbox } = await json('status');
    expect(findings).toContainEqual(
      expect.objectContaining({
        id: 'events-pending/outbox/held',
        count: 1,
        what: expect.stringContaining('2031'),
        commands: [repair],
      }),
    );
    expect(outbox).toMatchObject({ pending: 1, stuck: [{ because: 'held', events: 1, example: eventId }] });
    expect((await json('why', eventId)).verdict).toMatchObject({ state: 'stuck', next: repair });
    expect((await json('events', 'list')).events).toMatchObject([{ eventId, because: 'held', stuck: true }]);
    const swept = await json('sweep', '--since', '1h');
    expect(swept).toMatchObject({
      published: 0,
      left: [
        {
          because: 'held',
          events: 1,
          example: eventId,
          until: LEASED_UNTIL,
          next: 'audit --since 1h --repair',
        },
      ],
    });
    const { out } = await run('sweep', '--since', '1h');
    expect(unwrapped(out)).toMatch(
      /0 published, 1 still pending\. • 1 event leased until 2031-.* audit --since 1h --repair/,
    );
    expect(out).not.toContain('cdk-mailroom sweep');
  });

  test('on an event whose last attempt failed', async () => {
    const refused = {
      leaseUntil: Date.UTC(2026, 0, 1, 0, 30),
      lastError: 'The bus refuses it.',
      attempts: 2,
    };
    const { eventId, json } = await waiting(refused);
    const next = 'npx cdk-mailroom doctor --stage dev';
    expect((await json('status')).findings).toContainEqual(
      expect.objectContaining({ id: 'events-pending/outbox/retry', commands: [next] }),
    );
    const { verdict } = await json('why', eventId);
    expect(verdict).toMatchObject({ state: 'stuck', next });
    expect(verdict.text).toContain('The bus refuses it');
    expect((await json('sweep', '--since', '1h')).left).toMatchObject([
      { because: 'retry', lastError: 'The bus refuses it.', next: 'doctor' },
    ]);
  });

  test('on an event with a source that is not declared', async () => {
    const { eventId, json } = await waiting({}, ['others']);
    expect((await json('status')).findings).toContainEqual(
      expect.objectContaining({ code: 'events-undeclared' }),
    );
    expect((await json('why', eventId)).verdict.state).toBe('undeclared');
  });

  test('on an event that is DEAD: the sweep names the list of its cause', async () => {
    const mailroom = mailroomInMemory([fine], {
      bus: { failEntry: () => ({ code: 'InvalidArgument', message: 'The entry is invalid' }) },
    });
    const eventId = await commit(mailroom);
    for (let pass = 0; pass < 6; pass += 1) await mailroom.publish();
    const { out } = await runInMemory(mailroom, ['sweep', '--since', '1h', '--json']);
    expect(JSON.parse(out).left).toMatchObject([
      { because: 'dead', events: 1, example: eventId, next: 'dlq list dead --by cause' },
    ]);
  });

  test('on an event that is due: the sweep publishes it, and a second one names the audit', async () => {
    const { eventId, json, run } = await waiting({});
    const next = 'npx cdk-mailroom sweep --since 1h --stage dev';
    expect((await json('status')).findings[0]).toMatchObject({
      id: 'events-pending/outbox/due',
      commands: [next],
    });
    expect((await json('why', eventId)).verdict).toMatchObject({ state: 'stuck', next });
    expect(await json('sweep', '--since', '1h')).toMatchObject({ published: 1, left: [] });
    const again = await run('sweep', '--since', '1h');
    expect(again.out).toMatch(/npx cdk-mailroom audit --since 2h --stage dev/);
    expect(again.out).not.toContain('cdk-mailroom sweep');
  });
});
