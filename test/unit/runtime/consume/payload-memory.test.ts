import { expect, test } from 'vitest';
import { transactionalBatch } from '../../../../lambdas/runtime/consume/batch-handler.ts';
import { leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import type { Payloads } from '../../../../lambdas/runtime/events/payloads.ts';
import { crashable } from './consumer-rig.ts';
import { LARGE, ReportMade, reports } from './payload-rig.ts';

const handlers = [
  ['leased', leased(ReportMade, async () => {})],
  ['transactional', transactional(ReportMade, async () => ({}))],
  ['batch', transactionalBatch(ReportMade, async () => ({}))],
] as const;

/** A consumer whose process has room for one payload, and none for the object `tooLarge`. */
function small(kind: number, maxAttempts = 3) {
  const parts = reports({}, 60);
  const tooLarge: string[] = [];
  const payloadsOf = ({ kill }: { kill(): Promise<never> }): Payloads => {
    let inMemory = 0;
    return {
      ...parts.payloads,
      read: async (event) => {
        inMemory += 1;
        await parts.clock.sleep(100); // the others are read at the same time
        if (inMemory > 1 || tooLarge.includes(event.payload.key)) return kill();
        return parts.payloads.read(event);
      },
    };
  };
  const handler = handlers[kind]?.[1];
  const { drain } = crashable(parts, () => (handler ? [handler] : []), { maxAttempts }, payloadsOf);
  const ends = (events: readonly { readonly eventId: string }[]) =>
    events.map(({ eventId }) => parts.row(eventId)?.status);
  return { ...parts, drain, ends, tooLarge };
}

const KINDS = handlers.map(([name], kind) => [name, kind] as const);

test.each(KINDS)(
  'payloads that together do not fit into the memory of a function are processed one after another: %s',
  async (_name, kind) => {
    const { commit, drain, ends, queue } = small(kind);
    const committed = await commit(LARGE, LARGE, LARGE, 'small', 'small');
    await drain(200);
    expect(ends(committed)).toEqual(committed.map(() => 'PROCESSED'));
    expect(queue.deadLetters()).toEqual([]);
  },
);

test.each(KINDS)(
  'a payload that does not fit alone exhausts its own attempts, and no other message of its batch: %s',
  async (_name, kind) => {
    const { commit, drain, ends, queue, tooLarge, row } = small(kind);
    const [huge, ...others] = await commit(LARGE, 'small', LARGE, 'small');
    tooLarge.push(`events/${huge?.eventId}`);
    await drain(200);
    expect(row(huge?.eventId ?? '')).toMatchObject({ status: 'REJECTED', reason: 'ATTEMPTS_EXHAUSTED' });
    expect(ends(others)).toEqual(others.map(() => 'PROCESSED'));
    expect(queue.deadLetters()).toHaveLength(1);
  },
);
