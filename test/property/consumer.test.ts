import fc from 'fast-check';
import { expect, it } from 'vitest';
import { pendingRow } from '../../lambdas/runtime/outbox/pending-row.ts';
import { unreadableId } from '../../lambdas/runtime/store/event-id.ts';
import { inboxKey, rejectedKey } from '../../lambdas/runtime/store/keys.ts';
import { envelopeOf } from '../support/envelope-of.ts';
import { consumerConfig } from '../support/runtime-rig.ts';
import { anyJson, anyThrown } from './support/arbitraries.ts';
import { batches, DEEDS, type Handed } from './support/deliveries.ts';
import { runs } from './support/runs.ts';
import { workingConsumer } from './support/working-consumer.ts';

it('whatever an event holds, it is answered, with names that it gave, each once', async () => {
  const events = fc.oneof(anyJson, fc.record({ Records: fc.oneof(anyJson, fc.array(anyJson)) }));
  await fc.assert(
    fc.asyncProperty(
      batches(DEEDS),
      fc.option(events),
      anyThrown,
      fc.nat(),
      async (specs, event, thrown, seed) => {
        const { deliver, handed, refusals } = workingConsumer(specs, thrown, seed);
        const failed = await deliver(event ?? undefined);
        const given = event === null ? handed.map(({ record }) => record) : recordsOf(event);
        expect(failed.filter((id) => !given.some((record) => messageIdOf(record) === id))).toEqual([]);
        expect(new Set(failed).size).toBe(failed.length);
        expect(refusals).toEqual([]);
      },
    ),
    runs(60),
  );
});

it('what an answer does not name is processed: SQS deletes it', async () => {
  await fc.assert(
    fc.asyncProperty(batches(DEEDS), anyThrown, fc.nat(), async (specs, thrown, seed) => {
      const { deliver, handed, statusOf } = workingConsumer(specs, thrown, seed);
      const failed = await deliver();
      for (const { record, eventId } of handed) {
        const messageId = messageIdOf(record);
        if (messageId === undefined || failed.includes(messageId)) continue;
        expect(statusOf(eventId ?? 'of no good message')).toBe('PROCESSED');
      }
    }),
    runs(60),
  );
});

it('a good message among garbage is processed, its work is done once, and it is not named', async () => {
  await fc.assert(
    fc.asyncProperty(batches(DEEDS), anyThrown, fc.nat(), async (specs, thrown, seed) => {
      const { deliver, handed, statusOf, done, emitted } = workingConsumer(specs, thrown, seed);
      const failed = await deliver();
      for (const one of handed) {
        const { spec, eventId = '' } = one;
        if (spec.kind !== 'good' || spec.deed === 'throw' || spec.deed === 'poison') continue;
        if (spec.prior === 'leased') {
          expect(statusOf(eventId)).toBe('PROCESSING');
          continue;
        }
        expect(statusOf(eventId)).toBe('PROCESSED');
        expect(done(eventId)).toBe(worksOf(one));
        for (const row of emitted(eventId))
          expect(pendingRow({ ...row })?.entry.traceHeader).toBe(envelopeOf(row).traceId);
        const alone = handed.filter((other) => other.eventId === eventId).length === 1;
        if (alone) expect(failed).not.toContain(messageIdOf(one.record));
      }
    }),
    runs(60),
  );
});

it('whatever a handler throws, its message is reported as failed, and its row is FAILED', async () => {
  const ours = ['PoisonMessage', 'AlreadyProcessed'];
  const thrown = anyThrown.filter((value) => !(value instanceof Error && ours.includes(value.name)));
  await fc.assert(
    fc.asyncProperty(batches(['throw']), thrown, fc.nat(), async (specs, value, seed) => {
      const { deliver, handed, statusOf } = workingConsumer(specs, value, seed);
      const failed = await deliver();
      for (const { spec, eventId = '', record } of handed) {
        if (spec.kind !== 'good' || spec.prior === 'PROCESSED' || spec.prior === 'leased') continue;
        expect(failed).toContain(messageIdOf(record));
        // Without a claim the first run of a transactional handler leaves no trace.
        const before =
          spec.prior === 'none' ? undefined : spec.prior === 'abandoned' ? 'PROCESSING' : spec.prior;
        expect(['FAILED', 'REJECTED', ...(spec.type === 'Swift' ? [before] : [])]).toContain(
          statusOf(eventId),
        );
      }
    }),
    runs(60),
  );
});

it('a message that can never succeed is named, rejected with its reason, and never run', async () => {
  await fc.assert(
    fc.asyncProperty(batches(['poison']), fc.nat(), async (specs, seed) => {
      const { deliver, handed, table, ran } = workingConsumer(specs, undefined, seed);
      const failed = await deliver();
      for (const { spec, record } of handed) {
        const messageId = messageIdOf(record) ?? '';
        if (spec.kind === 'wrong') expect(failed).toContain(messageId);
        if (spec.kind !== 'garbage') continue;
        expect(failed).toContain(messageId);
        const { body } = Object(record) as { readonly body?: unknown };
        const unreadable = unreadableId(typeof body === 'string' ? body : messageId);
        const row = table.item(inboxKey(consumerConfig.consumer, unreadable));
        expect(row).toMatchObject({ status: 'REJECTED', reason: 'UNREADABLE_MESSAGE' });
        expect(table.item(rejectedKey(consumerConfig.consumer, unreadable))).toBeDefined();
      }
      const good = handed.flatMap(({ spec, eventId }) => (spec.kind === 'good' ? [eventId] : []));
      expect(ran.filter((eventId) => !good.includes(eventId))).toEqual([]);
    }),
    runs(60),
  );
});

/** How often the work of a good message is done in all. */
function worksOf({ spec }: Handed): number {
  if (spec.kind !== 'good' || spec.prior === 'PROCESSED') return 0;
  if (spec.deed === 'effect') return spec.type === 'Led' ? 1 : 0;
  return spec.deed === 'commit' || spec.deed === 'emit' ? 1 : 0;
}

function recordsOf(event: unknown): readonly unknown[] {
  const { Records } = (event ?? {}) as { Records?: unknown };
  return Array.isArray(Records) ? Records : [];
}

function messageIdOf(record: unknown): string | undefined {
  const { messageId } = (record ?? {}) as { messageId?: unknown };
  return typeof messageId === 'string' && messageId !== '' ? messageId : undefined;
}
