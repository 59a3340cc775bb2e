import { expect, test } from 'vitest';
import { PoisonMessage } from '../../../lambdas/runtime/base/errors.ts';
import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import type { SourceConsumer } from '../../../lambdas/runtime/operations/directory.ts';
import { readSourceConsumers } from '../../../lambdas/runtime/operations/source-consumers.ts';
import { createInboxProcessor } from '../../../lambdas/runtime/sources/inbox-processor.ts';
import { mintEventId } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { memoryTelemetry } from '../../../testing/index.ts';
import { consumerConfig, startedLongAgo, ThingHappened } from '../../support/runtime-rig.ts';
import { auditRig, consumerEntry } from '../runtime/operations/audit/audit-rig.ts';
import { directory, mailroomInMemory } from './support/mailroom-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';
import { commit, fine } from './support/why-rig.ts';

const config = { ...consumerConfig, consumer: 'ledger' };
const unwrapped = (text: string) => text.replace(/\s+/g, ' ');
const APPLY = ['--reason', 'never booked', '--apply'];

/** A Mailroom with a published event, and a consumer of Kafka. */
async function withLedger(handle: () => Promise<void> = async () => {}) {
  const made = mailroomInMemory([fine]);
  const eventId = await commit(made);
  await made.publish();
  await made.drain();
  const { clock, table, memory } = made;
  const inbox = createInboxProcessor({ config, table, clock, telemetry: memoryTelemetry() });
  const handler = leased(ThingHappened, handle);
  inbox.handles(handler, 'Kafka');
  await clock.advance(1);
  const sourceConsumers: SourceConsumer[] = await readSourceConsumers(table, { consumers: [] }, clock.now());
  const row = made.rows().find(({ SK }) => SK.endsWith(eventId));
  const body = row?.envelope ?? '';
  const run = (...argv: string[]) =>
    runInMemory({ ...made, directory: { ...directory, sourceConsumers } }, argv);
  return {
    ...{ eventId, body, run, clock, memory, table },
    receive: (text = body, id = '1') => inbox.process({ id, body: text }, handler),
    row: (id = eventId) => memory.item(inboxKey('ledger', id)),
  };
}

test('status lists a consumer of another source, with its source, and what it has rejected', async () => {
  const { run, receive } = await withLedger(async () => {
    throw new PoisonMessage('no account');
  });
  await receive();
  const { code, out } = await run('status', '--json');
  expect(code).toBe(1);
  const { sourceConsumers, findings } = JSON.parse(out);
  expect(findings).toMatchObject([{ state: 'broken', part: expect.stringContaining('ledger'), count: 1 }]);
  expect(sourceConsumers.ledger).toMatchObject({ from: 'Kafka', failed: 0, rejected: 1, unreadable: 0 });
});

test('why proves nothing of an event that another source may not have delivered yet, and knows its row', async () => {
  const { run, eventId, receive } = await withLedger();
  const before = JSON.parse((await run('why', eventId, '--json')).out);
  expect(before.verdict).toMatchObject({ state: 'unproven', text: expect.stringContaining('ledger') });
  await receive();
  const after = JSON.parse((await run('why', eventId, '--json')).out);
  expect(after.verdict).toMatchObject({ state: 'processed' });
  expect(after.events[0].consumers).toEqual({ worker: 'PROCESSED', ledger: 'PROCESSED' });
});

test('what another source delivered too late is found, allowed by the printed command, and runs', async () => {
  let runs = 0;
  const { run, body, receive, row, memory, clock } = await withLedger(async () => {
    runs += 1;
  });
  await startedLongAgo(memory, 'ledger');
  const eventId = mintEventId(clock.now() - 40 * 24 * 60 * MINUTE_MS, 8);
  const old = JSON.stringify({ ...JSON.parse(body), eventId });
  expect(await receive(old)).toMatchObject({ kind: 'rejected' });
  expect(runs).toBe(0);

  const { messages } = JSON.parse((await run('messages', 'list', '--json')).out);
  expect(messages).toMatchObject([{ consumer: 'ledger', eventId, reason: 'EVENT_TOO_OLD' }]);
  const why = await run('why', eventId);
  expect(why.code).toBe(1);
  expect(unwrapped(why.out)).toContain(`messages allow ledger ${eventId}`);

  const allowed = await run('messages', 'allow', 'ledger', eventId, ...APPLY);
  expect(allowed.code).toBe(0);
  expect(await receive(old)).toMatchObject({ kind: 'rejected', reason: { code: 'EVENT_TOO_OLD' } });
  expect(runs).toBe(0);
  expect(await receive(old, '2')).toEqual({ kind: 'done' });
  expect(runs).toBe(1);
  expect(row(eventId)).toMatchObject({ status: 'PROCESSED' });
});

test('a rejected message of another source is resolved, and a fix is refused: no function commits it', async () => {
  const { run, eventId, receive, row } = await withLedger(async () => {
    throw new PoisonMessage('no account');
  });
  await receive();
  expect((await run('messages', 'resolve', 'ledger', eventId, ...APPLY)).code).toBe(0);
  expect(row()).toMatchObject({ status: 'PROCESSED', resolvedReason: 'never booked' });
});

test('the audit names its events, of which an absent row proves nothing', async () => {
  const events = [{ source: 'things', type: 'ThingHappened' }];
  const ledger = { name: 'ledger', service: 'things', from: 'Kafka', events, order: undefined };
  const sourceConsumers = [{ ...ledger, maxAttempts: 5, inboxRetentionDays: 35, seenAt: 0 }];
  const rig = auditRig([consumerEntry('payments')]);
  Object.assign(rig.directory, { sourceConsumers });
  await rig.event(20 * MINUTE_MS);
  const report = await rig.run();
  expect(report.notAudited).toEqual([{ consumer: 'ledger', events, because: 'source' }]);
  expect(report.consumers).not.toHaveProperty('ledger');
});

test('the story of an event has the lines of a consumer of another source', async () => {
  const { run, eventId, receive } = await withLedger(async () => {
    throw new PoisonMessage('no account');
  });
  await receive();
  const { events } = JSON.parse((await run('why', eventId, '--json')).out);
  const lines = events[0].story.filter(({ consumer }: { consumer: string }) => consumer === 'ledger');
  expect(lines.map(({ what }: { what: string }) => what)).toEqual(['claimed', 'rejected']);
  expect(unwrapped((await run('why', eventId, '--story')).out)).toMatch(/ledger .*rejected, .*no account/);
});

test.each([
  [['pause', 'ledger']],
  [['dlq', 'list', 'consumer:ledger']],
  [['dlq', 'redrive', 'ledger']],
  [['messages', 'list', '--waiting', '--consumer', 'ledger']],
])('%j is refused with the source of the consumer and what to do', async (argv) => {
  const { run } = await withLedger();
  const { code, err } = await run(...argv);
  expect(code).toBe(3);
  expect(unwrapped(err)).toMatch(/^\w+: .*"ledger".* Kafka/);
});
