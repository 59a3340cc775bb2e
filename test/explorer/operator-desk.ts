import { createAwsClock } from '../../cli/terminal/aws-clock.ts';
import { CLOCK_SKEW_MS, type Clock } from '../../lambdas/runtime/base/clock.ts';
import type { Settlement } from '../../lambdas/runtime/inbox/settle-message.ts';
import { repairChangedRow } from '../../lambdas/runtime/operations/audit/changed-row-repair.ts';
import type { Directory } from '../../lambdas/runtime/operations/directory.ts';
import { inboxKey, rejectedKey } from '../../lambdas/runtime/store/keys.ts';
import type { OperationDeps } from '../../lambdas/runtime/store/operation-record.ts';
import { SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import type { Item, Table } from '../../lambdas/runtime/store/table.ts';
import type { Actor } from '../../testing/explorer/actor.ts';
import type { ConsumerWorld } from '../../testing/explorer/consumer-world.ts';

/** An operator who decides about the message, at any time. */
export function decides(
  decision: (deps: OperationDeps, resolution: Settlement) => Promise<unknown>,
): (world: ConsumerWorld, operator: Actor, desk: OperationDeps) => Promise<void> {
  return async (world, operator, desk) => {
    await operator.step('looks at the message', () => {}); // which may be at any time
    const { consumer } = world.config;
    await operator.invoke(60_000, () =>
      decision(desk, {
        consumer,
        eventId: world.eventId,
        reason: 'done by hand',
        by: 'ada',
      }),
    );
  };
}

/** The directory of a Mailroom without declared sources. */
export const DIRECTORY = { mailroom: {} as Directory['mailroom'] };

/** An operator who lists the message, at any time: it was set REJECTED by hand. */
export async function lists(world: ConsumerWorld, operator: Actor, desk: OperationDeps): Promise<void> {
  await operator.step('looks at the message', () => {}); // which may be at any time
  const { eventId, config } = world;
  const unlisted = { eventId, consumer: config.consumer, kind: 'unlisted' } as const;
  await operator.invoke(60_000, () => repairChangedRow({ ...desk, directory: DIRECTORY }, unlisted));
}

/** The clock and the table of the `mailroom` command: every answer of the table tells the clock what time it is at AWS. */
export function deskOf(
  operator: Actor,
  table: Table,
  trueTime: () => number,
): OperationDeps & { readonly clock: Clock } {
  const clock = createAwsClock(operator.clock, operator.clock.now);
  const answered = <T>(call: Promise<T>): Promise<T> =>
    call.finally(() => clock.learn(new Date(trueTime()).toUTCString(), clock.steadyMs()));
  void answered(Promise.resolve()); // that of the directory
  return {
    clock,
    random: operator.random,
    table: {
      ...table,
      get: (key, options) => answered(table.get(key, options)),
      write: (write) => answered(table.write(write)),
      transact: (actions, token) => answered(table.transact(actions, token)),
    },
  };
}

/** When an operator sees that a lease is over: the margin, and the second that a `Date` header counts, later than it is. */
export function leasesSeenOut({ memory, config, eventId }: ConsumerWorld): number[] {
  const { leaseUntil } = memory.item(inboxKey(config.consumer, eventId)) ?? {};
  return typeof leaseUntil === 'number' ? [leaseUntil + CLOCK_SKEW_MS + 1_000] : [];
}

/** The fence of {@link rejectedRows}. */
const EARLIER_FENCE = 'of an earlier worker';

/** A message that was set REJECTED by hand, without its pointer. */
export const UNLISTED = {
  items: (eventId: string) => rejectedRows(eventId).slice(0, 1),
  unlistedFence: EARLIER_FENCE,
};

/** A message that was rejected under another SQS message id, after as many attempts as it has. */
export function rejectedRows(eventId: string): Item[] {
  const cause = { reason: 'ATTEMPTS_EXHAUSTED', rejectedAt: 0, lastError: 'down', fingerprint: 'down' };
  return [
    {
      ...inboxKey('worker', eventId),
      schema: SCHEMA,
      status: 'REJECTED',
      fence: EARLIER_FENCE,
      attempts: 3,
      rejectedIds: new Set(['an earlier message']),
      ...cause,
    },
    { ...rejectedKey('worker', eventId), schema: SCHEMA, ...cause },
  ];
}
