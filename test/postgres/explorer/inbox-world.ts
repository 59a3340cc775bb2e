import { CLOCK_SKEW_MS } from '../../../lambdas/runtime/base/clock.ts';
import { isMailroomError } from '../../../lambdas/runtime/base/errors.ts';
import type { Inbox } from '../../../lambdas/runtime/consume/inbox-port.ts';
import type { Message } from '../../../lambdas/runtime/inbox/inbox.ts';
import { settleMessage } from '../../../lambdas/runtime/inbox/settle-message.ts';
import { mintEventId } from '../../../lambdas/runtime/store/event-id.ts';
import { manualClock } from '../../../testing/index.ts';
import { FUNCTION_MS, LEASE_MS, sent } from '../inbox-rig.ts';
import { type ExploredStore, type StoreSide, stateAtLast } from './explored-store.ts';
import type { World } from './schedules.ts';

/** A rule that is left out: the explorer must find what follows. */
export interface InboxHole {
  /** Changes a statement. @default none */
  readonly rewrite?: (text: string) => string;
  /** The second one is an operator who resolves the message, without a check of its effects. @default a worker */
  readonly operator?: boolean;
  /** Replaces transitions. @default none */
  readonly inbox?: (inbox: Inbox, side: StoreSide) => Inbox;
}

/** Two workers that receive the same message, whose handler charges a card and commits a payment; or one, and an operator. */
export async function twoWorkers(
  store: ExploredStore,
  { rewrite, operator = false, inbox: change }: InboxHole = {},
): Promise<World> {
  const clock = manualClock();
  const { plain } = store;
  await store.clear();
  const message: Message = { eventId: mintEventId(clock.now(), 2), messageId: 'first' };
  // The provider ignores idempotency keys.
  const charges: number[] = [];
  const charging = new Set<number>();
  let wake: () => void = () => {};

  async function receive(side: StoreSide, worker: number): Promise<void> {
    const whole = side.inbox(clock);
    const inbox = change?.(whole, side) ?? whole;
    const options = { alone: true, firstReceive: false, endsBy: clock.now() + FUNCTION_MS };
    const result = await inbox.claim(message, options);
    if (result.status !== 'claimed') return;
    const { claim } = result;
    const call = { claim, name: 'charge', run: 1 };
    try {
      const isDone =
        claim.effects.charge?.status === 'COMPLETED' || (await inbox.startEffect(call)) !== undefined;
      if (!isDone) {
        charges.push(worker);
        charging.add(worker);
        await inbox.finishEffect(call, { status: 'COMPLETED', result: undefined });
        charging.delete(worker);
      }
      const pay = async (tx: unknown) => {
        await side.pay(tx, message.eventId);
        return {};
      };
      const end = await inbox.commit(claim, pay, {} as never, sent);
      if (end.status === 'failed') throw end.error;
    } catch (error) {
      if (isMailroomError(error, 'EFFECT_IN_PROGRESS')) await inbox.release(claim, clock.now(), {});
      else if (!isMailroomError(error, 'FENCE_LOST')) throw error;
    }
  }

  let resolved = false;
  const resolve = async (side: StoreSide): Promise<void> => {
    const inboxChanges = side.changes(clock);
    const note = { consumer: 'worker', eventId: message.eventId, by: 'ada', reason: 'paid by phone' };
    const { status } = await settleMessage({ clock, inboxChanges }, note, 'PROCESSED');
    resolved = status === 'resolved';
  };

  const workers = [0, 1].map((index) => {
    const worker = store.worker(() => wake(), rewrite);
    worker.run(() => (operator && index === 1 ? resolve(worker.side) : receive(worker.side, index)));
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
    verdict: async (crashed) => {
      const failed = workers.map((worker) => worker.failure()).find((error) => error !== undefined);
      if (failed !== undefined) return `a worker failed with ${String(failed)}`;
      const mayRepeat = crashed !== undefined && charging.has(crashed) ? 1 : 0;
      const status = await stateAtLast(store, 1, async () => {
        await store.shift(FUNCTION_MS + 10_000);
        await receive(plain, 2);
      });
      if (status !== 'PROCESSED') return `the message is ${status}`;
      const payments = (await plain.notes()).length;
      if (resolved && payments + charges.length > 0)
        return `resolved, with ${payments} payments and ${charges.length} charges`;
      if (resolved) return undefined;
      if (payments !== 1) return `${payments} payments`;
      return charges.length > 1 + mayRepeat ? `${charges.length} charges` : undefined;
    },
  };
}
