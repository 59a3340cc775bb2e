import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import type { ConsumerLedger } from '../../lambdas/runtime/operations/audit/audit-ledger.ts';
import type { InboxRow } from '../../lambdas/runtime/store/inbox-row.ts';
import { auditRig, consumerEntry } from '../unit/runtime/operations/audit/audit-rig.ts';

type Standing = Exclude<keyof ConsumerLedger, 'expected' | 'unproven'>;

const ROW_OF: Partial<Record<Standing, InboxRow['status']>> = {
  processed: 'PROCESSED',
  inFlight: 'PROCESSING',
  failed: 'FAILED',
  rejected: 'REJECTED',
  discarded: 'DISCARDED',
};

const CONSUMERS = ['payments', 'inventory'] as const;

const standing = fc.constantFrom<Standing>(
  'processed',
  'inFlight',
  'failed',
  'rejected',
  'discarded',
  'deadLetters',
  'waiting',
  'missing',
);

/** One event, and where it is at each consumer. A queue is either empty, and nothing waits, or not, and nothing is known to be missing. */
const event = fc.record({
  status: fc.constantFrom('PUBLISHED', 'PUBLISHED', 'PUBLISHED', 'PENDING', 'DEAD', 'DISCARDED'),
  type: fc.constantFrom('OrderPlaced', 'OrderPlaced', 'OrderSeen'),
  agoMinutes: fc.integer({ min: 6, max: 59 }),
  payments: standing,
  inventory: standing,
});

test('whatever became of the events: what was expected is accounted for, each where it is, and just the missing are named', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(event, { maxLength: 30 }),
      fc.record({ payments: fc.boolean(), inventory: fc.boolean() }),
      async (events, busy) => {
        const rig = auditRig(CONSUMERS.map((name) => consumerEntry(name)));
        const expected = { payments: counts(), inventory: counts() };
        const lost: string[] = [];
        for (const name of CONSUMERS) if (busy[name]) rig.queues.holds.set(`${name}-queue`, 3);

        for (const { status, type, agoMinutes, ...at } of events) {
          const envelope = await rig.event(agoMinutes * MINUTE_MS, { status, type } as object);
          for (const name of CONSUMERS) {
            const row = ROW_OF[at[name]];
            const nowhere = busy[name] ? 'inconclusive' : 'missing';
            const stands = row !== undefined || at[name] === 'deadLetters' ? at[name] : nowhere;
            if (row !== undefined) await rig.inbox(name, envelope.eventId, row);
            if (stands === 'deadLetters')
              rig.letter(`${name}-${agoMinutes % 2 ? 'dead' : 'undelivered'}`, envelope);
            if (status !== 'PUBLISHED' || type !== 'OrderPlaced') continue;
            expected[name].expected += 1;
            expected[name][stands] += 1;
            if (stands === 'missing') lost.push(`${envelope.eventId} ${name}`);
          }
        }

        const report = await rig.run();
        expect(report.consumers).toEqual(expected);
        expect(report.missing.map(({ eventId, consumer }) => `${eventId} ${consumer}`).sort()).toEqual(
          lost.sort(),
        );
        expect(report.events).toBe(events.length);
        const { published, pending, dead, discarded, unreadable } = report;
        expect(published + pending + dead + discarded + unreadable).toBe(report.events);
        for (const { expected, ...others } of Object.values(report.consumers)) {
          expect(Object.values(others).reduce((sum, count) => sum + count, 0)).toBe(expected);
        }
        expect((await rig.repair(report)).sent).toHaveLength(lost.length);
        expect(rig.queues.sent).toHaveLength(lost.length);
      },
    ),
    { numRuns: 60 },
  );
});

function counts(): Record<keyof ConsumerLedger, number> {
  return {
    expected: 0,
    processed: 0,
    inFlight: 0,
    failed: 0,
    rejected: 0,
    discarded: 0,
    unreadable: 0,
    deadLetters: 0,
    waiting: 0,
    inconclusive: 0,
    unproven: 0,
    missing: 0,
  };
}
