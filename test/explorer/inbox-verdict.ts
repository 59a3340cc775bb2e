import { inboxKey } from '../../lambdas/runtime/store/keys.ts';
import { OUTBOX_PREFIX } from '../../lambdas/runtime/store/outbox-partition.ts';
import type { ConsumerWorld } from '../../testing/explorer/consumer-world.ts';
import { CHARGE, COUNTER } from './consumer-handlers.ts';

/** What is wrong at the end with what the handler committed, or with the message. @param applied - how often it may have been */
export function verdict(world: ConsumerWorld, applied: readonly number[]): string | undefined {
  const times = Number(world.memory.item(COUNTER)?.n ?? 0);
  const events = world.memory.items().filter(({ PK }) => String(PK).startsWith(OUTBOX_PREFIX)).length;
  if (events !== times) return `The effect was applied ${times} times, but there are ${events} events of it`;
  return (
    world.unrest() ??
    (applied.includes(times) ? undefined : `The effect was applied ${times} times`) ??
    decidedOrApplied(world, times, applied)
  );
}

/** What an operator has settled was not run, and everything else was. */
function decidedOrApplied(
  world: ConsumerWorld,
  times: number,
  applied: readonly number[],
): string | undefined {
  const decided = isDecided(world);
  if (decided && times > 0) return 'An operator settled the message, and its effect was applied';
  return !decided && times === 0 && applied.includes(1)
    ? 'The message was neither settled nor run'
    : undefined;
}

/** Whether an operator has settled the message. */
function isDecided({ memory, config, eventId }: ConsumerWorld): boolean {
  const row = memory.item(inboxKey(config.consumer, eventId));
  return row?.resolvedBy !== undefined || row?.discardedBy !== undefined;
}

/** What is wrong at the end with the effects of the handler: of a message that an operator has settled unchecked, none has happened. */
export function uncharged(world: ConsumerWorld, charges: boolean): string | undefined {
  const keys = [...world.log.happened.keys()];
  const expected =
    charges && !isDecided(world) ? [`${world.config.consumer}:${world.eventId}:${CHARGE}`] : [];
  return keys.join() === expected.join() ? undefined : `The effects are "${keys.join()}"`;
}
