import { expect, test } from 'vitest';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import type { EventDraft } from '../../../lambdas/runtime/events/event.ts';
import { createAudit } from '../../../lambdas/runtime/operations/audit/audit.ts';
import { createOutbox } from '../../../lambdas/runtime/store/dynamo/outbox.ts';
import { outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { SWEEP_STATE_KEY } from '../../../lambdas/runtime/store/keys.ts';
import { consumerConfig, runThrough, ThingHappened } from '../../support/runtime-rig.ts';
import { directory, mailroomInMemory } from './support/mailroom-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';

/** A Mailroom with 2 shards, whose stream relay is off, and a producer that chooses the shards of its events. */
function outranged() {
  const mailroom = mailroomInMemory([leased(ThingHappened, async () => {})]);
  const deployed = { ...mailroom, directory };
  let drawn = 0;
  const commitIn = async (shard: number, more: Partial<EventDraft> = {}) => {
    const random = (length: number) => {
      drawn += 1;
      return new Uint8Array(length).fill(drawn).fill(shard, length - 1);
    };
    const config = { ...consumerConfig, shards: 256 };
    const outbox = createOutbox({ config, table: mailroom.memory, clock: mailroom.clock, random });
    const draft = ThingHappened.create({ aggregateId: 'order-1', data: { n: shard } });
    const [event] = await outbox.commit({ events: [{ ...draft, ...more }] });
    return event?.eventId ?? '';
  };
  const run = async (...argv: readonly string[]) => {
    const { code, out } = await runInMemory(deployed, [...argv, '--json']);
    return { code, json: JSON.parse(out) };
  };
  const runPrinted = (command: string) =>
    run(...command.replace('npx cdk-mailroom ', '').replace(' --stage dev', '').split(' '));
  const publish = async () => {
    await mailroom.publish();
    await mailroom.drain();
  };
  return { ...mailroom, commitIn, run, runPrinted, publish };
}

test('why says which number of an aggregate it did not find, and sweep publishes what audit names', async () => {
  const parts = outranged();
  const { clock, commitIn, run, runPrinted, publish, memory } = parts;
  const since = clock.now();
  await commitIn(40, { sequence: 1 });
  await commitIn(1, { sequence: 2 });
  await publish();
  const before = await run('why', 'order-1');
  expect(before.json.verdict).toMatchObject({ state: 'unproven' });

  const audit = createAudit({ ...parts, rules: { describe: async () => undefined } });
  const { pending, incomplete } = await audit.run({ since, until: since + 60_000 });
  expect(pending).toBe(1);
  const [, command = ''] = /(npx cdk-mailroom sweep .*)$/.exec(incomplete[0] ?? '') ?? [];
  await expect(runPrinted(command)).resolves.toMatchObject({ code: 0, json: { published: 1 } });
  expect(memory.item(SWEEP_STATE_KEY)).toMatchObject({ shards: 41 });
  await publish();
  await expect(run('why', 'order-1')).resolves.toMatchObject({
    code: 0,
    json: { verdict: { state: 'processed' }, events: [{}, {}] },
  });
});

test('why of an event in a shard that is not swept prints the command that publishes it', async () => {
  const { commitIn, run, runPrinted, publish } = outranged();
  const id = await commitIn(40);
  await expect(run('why', id)).resolves.toMatchObject({ json: { verdict: { state: 'publishing' } } });
  await publish();
  const found = await run('why', id);
  expect(found).toMatchObject({ code: 1, json: { verdict: { state: 'stuck' } } });
  await expect(runPrinted(found.json.verdict.next)).resolves.toMatchObject({ json: { published: 1 } });
  await publish();
  await expect(run('why', id)).resolves.toMatchObject({ json: { verdict: { state: 'processed' } } });
});

test('why follows the causes of the events that it found to shards and minutes that it did not read', async () => {
  const { commitIn, run, publish, clock } = outranged();
  const first = await commitIn(40);
  const strange = await commitIn(50, { aggregateId: 'order-2' });
  await clock.advance(5 * 3_600_000);
  const second = await commitIn(1, { causationId: first });
  const third = await commitIn(1, { causationId: strange, aggregateId: 'order-1' });
  await publish();
  const { code, json } = await run('why', 'order-1', '--since', '10m');
  expect(json.events.map(({ eventId }: { eventId: string }) => eventId)).toEqual([first, second, third]);
  expect(json.verdict).toMatchObject({ state: 'stuck', eventId: first });
  expect(code).toBe(1);
});

test.each([
  [[2, 3, 5], 'number 1 of'],
  [[4, 5], 'numbers 1 to 3 of'],
  [[1, 2, 5], 'numbers 3 to 4 of'],
])('of an aggregate with the numbers %j, why misses %s', async (numbers, words) => {
  const { commitIn, run, publish } = outranged();
  for (const sequence of numbers) await commitIn(1, { sequence });
  await publish();
  const { json } = await run('why', 'order-1');
  expect(json.verdict.state).toBe('unproven');
  expect(json.verdict.text).toContain(words);
});

test('sweep refuses a number of shards that no event id can name', async () => {
  const { run } = outranged();
  await expect(run('sweep', '--since', '1h', '--shards', '257')).rejects.toThrow();
});

test('the redrive of a batch that the stream mapping discarded publishes the events in shards that the sweep does not read', async () => {
  const parts = outranged();
  const { clock, commitIn, queues, memory } = parts;
  const at = new Date(clock.now()).toISOString();
  const eventId = await commitIn(40);
  await clock.advance(5 * 60_000);
  const batch = { approximateArrivalOfFirstRecord: at, approximateArrivalOfLastRecord: at };
  const body = JSON.stringify({ DDBStreamBatchInfo: batch });
  const received = { messageId: 'discarded', receiptHandle: 'r', body, sentAt: clock.now(), receives: 1 };
  const letters = [received];
  const failures = {
    ...queues,
    depth: async (url: string) => ({
      ...(await queues.depth(url)),
      waiting: url === 'failures' ? letters.length : 0,
    }),
    receive: async (url: string, options: { readonly limit: number }) =>
      url === 'failures' ? letters.slice(0, options.limit) : queues.receive(url, options),
    remove: async () => void letters.pop(),
  };
  const deployed = { ...parts, directory, queues: failures as typeof queues };
  const redriven = runInMemory(deployed, ['dlq', 'redrive', 'stream', '--apply', '--reason', 'repaired']);
  await expect(runThrough(clock, redriven)).resolves.toMatchObject({ code: 0 });
  expect(letters).toEqual([]);
  expect(memory.item(outboxKeyOf(eventId))).toMatchObject({ status: 'PUBLISHED' });
  expect(memory.item(SWEEP_STATE_KEY)).toMatchObject({ shards: 41 });
});
