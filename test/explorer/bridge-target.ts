import { bridgeBy } from '../../lambdas/runtime/bridge/bridge.ts';
import {
  type BridgedEvent,
  type BridgeResult,
  type BridgeTarget,
  bridgedId,
  refused,
} from '../../lambdas/runtime/bridge/bridge-target.ts';
import type { Handler, LeasedContext } from '../../lambdas/runtime/consume/handler.ts';
import type { Actor } from '../../testing/explorer/actor.ts';
import type { CallFault } from '../../testing/explorer/call-outcomes.ts';
import { Numbered } from './order-scenarios.ts';

/** The properties of a target. */
export interface TargetOptions {
  /** The number that it never takes. @default none */
  readonly refuses?: number | undefined;
  /** A number that it never takes makes it refuse the whole call. @default false */
  readonly refusesAll?: boolean | undefined;
  /** It drops what it has under the same id, and another bridge, {@link OTHER_BRIDGE}, has sent each event to it before. @default false */
  readonly deduplicates?: boolean | undefined;
  /** The maximum number of entries of a call. @default 10 */
  readonly entriesMax?: number | undefined;
}

/** The name of another bridge, which sends the same events. */
export const OTHER_BRIDGE = 'other-bridge';

/** A target in memory, which all workers share. */
export interface MemoryTarget {
  /** The ids of the events that it has stored for the bridge, in the order of their first arrival. */
  readonly taken: ReadonlySet<string>;
  /** Stores entries, or refuses them. */
  take(entries: readonly BridgedEvent[]): readonly BridgeResult[];
}

const BUSY = refused('unavailable', 'BUSY', 'it has too many calls');

const INVALID = refused('invalid', 'BAD_BODY', 'it does not match the schema');

/** Creates a target. @param check - receives each entry that it stores */
export function memoryTarget(
  { refuses, refusesAll = false, deduplicates = false }: TargetOptions,
  check: (entry: BridgedEvent) => void,
): MemoryTarget {
  const taken = new Set<string>();
  const ids = new Set<string>();
  const isDuplicate = (entry: BridgedEvent) => {
    const id = bridgedId(entry);
    const isKnown = ids.has(id) || id === bridgedId({ ...entry, bridge: OTHER_BRIDGE });
    ids.add(id);
    return deduplicates && isKnown;
  };
  const isRefused = ({ event }: BridgedEvent) => event.sequence === refuses;
  return {
    taken,
    take: (entries) =>
      entries.map((entry): BridgeResult => {
        if (refusesAll ? entries.some(isRefused) : isRefused(entry)) return INVALID;
        if (isDuplicate(entry)) return { ok: true, place: { id: entry.event.eventId }, duplicate: true };
        check(entry);
        taken.add(entry.event.eventId);
        return { ok: true, place: { id: entry.event.eventId } };
      }),
  };
}

/**
 * The real handler of a bridge. Each call of its target is a step of the schedule, which may crash, stall, lose its answer or take effect late, and in
 * which the target may not take an entry for now.
 */
export function bridgeTo(
  target: MemoryTarget,
  { entriesMax = 10 }: TargetOptions,
  { call, clock }: Pick<Actor, 'call' | 'clock'>,
  tamper: (to: BridgeTarget) => BridgeTarget,
): Handler {
  const to: BridgeTarget = {
    name: () => 'topic things',
    limits: { entries: entriesMax, bytes: 262_144 },
    cloudEventsPrefix: 'ce_',
    send: async (entries) => {
      const results = await call({
        label: `send ${entries.map(({ event }) => event.sequence).join(', ')}`,
        perform: async () => target.take(entries),
        effect: true,
        failures: entries.map((busy) => exceptOne(target, entries, busy)),
      });
      void clock.sleep(0); // what has gathered is sent in the next turn of the event loop: the schedule continues after it
      return results;
    },
  };
  const [handler] = bridgeBy(clock, { to: tamper(to), events: [Numbered] });
  if (handler?.kind !== 'leased') throw new Error('A bridge has one leased handler');
  return {
    ...handler,
    handle: (event: never, ctx: LeasedContext) => {
      const result = handler.handle(event, ctx);
      void clock.sleep(0); // as above
      return result;
    },
  };
}

/** A call in which the target does not take one entry for now; it takes the others. */
function exceptOne(
  target: MemoryTarget,
  entries: readonly BridgedEvent[],
  busy: BridgedEvent,
): CallFault<readonly BridgeResult[]> {
  return {
    label: `the target is busy at ${busy.event.sequence}`,
    perform: async () => {
      const results = [...target.take(entries.filter((entry) => entry !== busy))];
      return entries.map((entry) => (entry === busy ? BUSY : (results.shift() ?? BUSY)));
    },
  };
}
