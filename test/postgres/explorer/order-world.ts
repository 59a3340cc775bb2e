import { CLOCK_SKEW_MS } from '../../../lambdas/runtime/base/clock.ts';
import { isMailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { mintEventId } from '../../../lambdas/runtime/store/event-id.ts';
import { lastKey } from '../../../lambdas/runtime/store/keys.ts';
import { Overtaken, orderVerdict } from '../../../lambdas/runtime/store/last-sequence.ts';
import { manualClock } from '../../../testing/index.ts';
import { FUNCTION_MS, LEASE_MS, sent } from '../inbox-rig.ts';
import { type ExploredStore, type StoreSide, stateAtLast } from './explored-store.ts';
import type { World } from './schedules.ts';

/** A setting of {@link twoEvents}. */
export interface OrderSetting {
  readonly mode: 'latest' | 'strict';
  /** The aggregate has a number: the events are its second and third one. @default they are the first ones */
  readonly begun?: boolean;
  /** Changes a statement, for a hole. @default none */
  readonly rewrite?: (text: string) => string;
}

const KEY = lastKey({
  consumer: 'worker',
  source: 'shop',
  group: 'g',
  aggregateType: 'Thing',
  aggregateId: 'thing-1',
}).PK;

/**
 * Two workers, each with the message of one of two consecutive events of an aggregate. The handler reads the state of the aggregate, and commits the state after
 * its event: it must have read that of the event before it.
 */
export async function twoEvents(
  store: ExploredStore,
  { mode, begun = false, rewrite }: OrderSetting,
): Promise<World> {
  const clock = manualClock();
  const { plain } = store;
  await store.clear();
  const before = begun ? 1 : 0;
  if (begun) await store.begin(KEY);
  const messages = [before + 1, before + 2].map((sequence) => ({
    sequence,
    eventId: mintEventId(clock.now(), 2),
  }));
  let wake: () => void = () => {};

  async function receive(side: StoreSide, { sequence, eventId }: (typeof messages)[number]) {
    const inbox = side.inbox(clock);
    const order = { key: KEY, mode, sequence };
    const seen = await inbox.lastSequence(KEY);
    const message = { eventId, messageId: 'first', place: { order, seen, skipsRejected: false } };
    const verdict = orderVerdict(order, seen, eventId);
    if (verdict === 'waits') return;
    const options = { alone: true, firstReceive: false, endsBy: clock.now() + FUNCTION_MS };
    const result = await inbox.claim(message, options);
    if (result.status !== 'claimed') return;
    const { claim } = result;
    if (verdict !== 'runs') {
      await inbox.supersede(claim, seen.last);
      return;
    }
    const state = (await side.notes()).at(-1) ?? String(before);
    const from = Number(state.split('>').at(-1));
    const end = await inbox.commit(
      claim,
      async (tx) => {
        await side.pay(tx, eventId, `${from}>${sequence}`);
        return {};
      },
      {} as never,
      sent,
    );
    if (end.status !== 'failed') return;
    if (end.error instanceof Overtaken) await inbox.release(claim, clock.now(), {});
    else if (!isMailroomError(end.error, 'FENCE_LOST')) throw end.error;
  }

  const workers = messages.map((message) => {
    const worker = store.worker(() => wake(), rewrite);
    worker.run(() => receive(worker.side, message));
    return worker;
  });

  return {
    workers,
    waiting: store.waiting,
    changed: () =>
      new Promise((resolve) => {
        wake = resolve;
      }),
    pass: () => store.shift(LEASE_MS + CLOCK_SKEW_MS + 1_000),
    verdict: async () => {
      const failed = workers.map((worker) => worker.failure()).find((error) => error !== undefined);
      if (failed !== undefined) return `a worker failed with ${String(failed)}`;
      const status = await stateAtLast(store, messages.length, async () => {
        await store.shift(FUNCTION_MS + 10_000);
        for (const message of messages) await receive(plain, message);
      });
      if (status !== 'PROCESSED') return 'a message is left';
      const states = (await plain.notes()).join(' ');
      const [first, second] = [before + 1, before + 2];
      const all = `${before}>${first} ${first}>${second}`;
      const right = mode === 'strict' ? [all] : [all, `${before}>${second}`];
      return right.includes(states) ? undefined : `states ${states}`;
    },
  };
}
