import { PoisonMessage } from '../../../../lambdas/runtime/base/errors.ts';
import { strict } from '../../../../lambdas/runtime/base/order.ts';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { defineEvent } from '../../../../lambdas/runtime/events/event.ts';
import type { RandomBytes } from '../../../../lambdas/runtime/store/event-id.ts';
import { lastKey } from '../../../../lambdas/runtime/store/keys.ts';
import { unwrapped } from '../../../support/captured-io.ts';
import { Counted } from '../../../support/runtime-rig.ts';
import { directory, worker } from './mailroom-in-memory.ts';
import { operatingMailroom } from './operating-mailroom.ts';
import { runInMemory } from './run-in-memory.ts';

const LAST = lastKey({
  source: 'things',
  consumer: worker.name,
  group: 'strict',
  aggregateType: 'Thing',
  aggregateId: '1',
});

/** An event of the same aggregates, for which the consumer has no handler. */
export const Renamed = defineEvent({ ...Counted, type: 'Renamed' });

/** An event whose number is none of the order: its definition declares no `sequence`. */
export const Noted = defineEvent({ ...Counted, type: 'Noted', sequence: false });

/** A Mailroom with a strict consumer, which rejects a negative `n`. An `n` of 0 is never published. @param last - the last number */
export async function orderedMailroom(
  last?: number,
  random?: RandomBytes,
  onReject: 'block' | 'skip' = 'block',
) {
  const appliedNumbers: number[] = [];
  const code = { isFixed: false };
  const made = operatingMailroom(
    [
      leased(Counted, async ({ sequence, data: { n } }) => {
        if (n < 0 && !code.isFixed) throw new PoisonMessage('n is negative');
        appliedNumbers.push(sequence);
      }),
    ],
    {
      random,
      config: { order: strict({ onReject }), maxReceives: 6 },
      bus: {
        failEntry: ({ detail }) =>
          detail.includes('"n":0') ? { code: 'InvalidArgument', message: 'Not JSON' } : undefined,
      },
    },
  );
  const consumers = [{ ...worker, events: [Counted, Renamed, Noted], order: `strict:${onReject}` }];
  const mailroom = { ...made, directory: { ...directory, consumers } };
  if (last !== undefined)
    await made.memory.write({
      Put: { Item: { ...LAST, last, at: made.clock.now(), schema: 1, eventId: undefined } as never },
    });
  const run = (...argv: string[]) => made.until(runInMemory(mailroom, argv));
  return {
    ...mailroom,
    code,
    applied: appliedNumbers,
    /** Commits events of one aggregate. @returns their ids by number */
    async commit(...numbered: readonly (readonly [sequence: number, n: number])[]) {
      const ids: Record<number, string> = {};
      for (const [sequence, n] of numbered) {
        const event = Counted.create({ aggregateId: '1', sequence, data: { n } });
        const [committed] = await made.outbox.commit({ events: [event] });
        ids[sequence] = committed?.eventId ?? '';
      }
      return ids;
    },
    run,
    /** Runs a command before anything is delivered. */
    undelivered: async (...argv: string[]) => {
      const { out, err } = await runInMemory(mailroom, [...argv, '--json']);
      return JSON.parse(out || err);
    },
    json: async (...argv: string[]) => {
      const { out, err } = await run(...argv, '--json');
      return JSON.parse(out || err);
    },
    text: async (...argv: string[]) => {
      const { out, err } = await run(...argv);
      return unwrapped(out + err);
    },
    last: () => made.memory.item({ ...LAST })?.last,
    /** The events of the consumer's dead letters. */
    letters: async () => {
      const letters = await made.queues.receive('dead-letters', { limit: 100 });
      return letters.map(({ body }): string => JSON.parse(body).detail.eventId);
    },
  };
}

/** The options that make a change. */
export const APPLY = ['--apply', '--reason', 'decided with the team'];
