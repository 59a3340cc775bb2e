import {
  type BridgedEvent,
  type BridgeResult,
  type BridgeTarget,
  isPermanent,
  refused,
} from '../../lambdas/runtime/bridge/bridge-target.ts';
import type { Handler, LeasedContext } from '../../lambdas/runtime/consume/handler.ts';
import type { BridgeTamper } from './bridge-scenarios.ts';
import { OTHER_BRIDGE } from './bridge-target.ts';
import { lastReadAs } from './order-holes.ts';
import type { Hole } from './relay-holes.ts';

/** The rules of a bridge, one by one. */
export const BRIDGE_HOLES: readonly Hole<BridgeTamper>[] = [
  {
    rule: 'send first, record second',
    where: 'a forwarded event, delivered twice',
    tamper: handling(async (send, ctx) => {
      await ctx.commit({});
      return send();
    }),
    found: /Number 1 is PROCESSED, but the target has not taken it/,
  },
  {
    rule: 'a call that fails fails its messages',
    where: 'a forwarded event, delivered twice',
    needs: { faults: 1, deviations: 1 },
    tamper: sending((to, entries) => to.send(entries).catch(() => entries.map(taken))),
    found: /Number 1 is PROCESSED, but the target has not taken it/,
  },
  {
    rule: 'only the message of a failed entry fails',
    where: 'forwarded events, two in one call',
    needs: { faults: 1, deviations: 1 },
    tamper: sending(async (to, entries) => {
      const results = await to.send(entries);
      return results.some(({ ok }) => ok) ? entries.map(taken) : results;
    }),
    found: /Number 2 is PROCESSED, but the target has not taken it/,
  },
  {
    rule: 'each result is that of its entry',
    where: 'forwarded events, two in one call',
    tamper: sending(async (to, entries) => (await to.send(entries)).toReversed()),
    found: /Number 2 has no receipt, or that of another event/,
  },
  {
    rule: 'the body is the envelope as it was delivered',
    where: 'a forwarded event, delivered twice',
    tamper: sending((to, entries) =>
      to.send(entries.map((entry) => ({ ...entry, body: JSON.stringify(entry.event) }))),
    ),
    found: /The target took a body of number 1 that was not sent/,
  },
  {
    rule: 'each body is sent under the id of its event',
    where: 'forwarded events, two in one call',
    tamper: sending((to, entries) =>
      to.send(entries.map((entry) => ({ ...entry, body: entries[0]?.body ?? '' }))),
    ),
    found: /The target took number 3 under the id of another event/,
  },
  {
    rule: 'an event is rejected only if the target has refused it, not for a lost answer',
    where: 'a forwarded event, delivered twice',
    needs: { faults: 1, deviations: 1 },
    tamper: sending((to, entries) =>
      to.send(entries).catch(() => entries.map(() => refused('invalid', 'NO_ANSWER', 'it did not answer'))),
    ),
    found: /Number 1 is rejected as refused, but the target took it/,
  },
  {
    rule: 'the id under which a target drops duplicates names the bridge',
    where: 'a target that drops duplicates and has it of another bridge',
    tamper: sending((to, entries) => to.send(entries.map((entry) => ({ ...entry, bridge: OTHER_BRIDGE })))),
    found: /Number 1 is PROCESSED, but the target has not taken it/,
  },
  {
    rule: 'what is refused with others is sent alone before it is rejected',
    where: 'one of which makes the target refuse their call',
    tamper: { tamperTarget: neverAlone },
    found: /Number 3 is REJECTED$/,
  },
  {
    rule: 'a number is sent only after its predecessor was recorded',
    where: 'strict: two forwarded events in the wrong order',
    tamper: { tamperTable: (real) => lastReadAs(real, 1) },
    found: /The target took the numbers as 2$/,
  },
];

/** A bridge whose handler sends in another way. */
function handling(
  other: (send: () => Promise<unknown>, ctx: LeasedContext) => Promise<unknown>,
): BridgeTamper {
  return {
    tamperBridge: (handler): Handler =>
      handler.kind === 'leased'
        ? {
            ...handler,
            handle: (event: never, ctx: LeasedContext) => other(() => handler.handle(event, ctx), ctx),
          }
        : handler,
  };
}

/** The answer for an entry that is taken as stored. */
function taken({ event }: BridgedEvent): BridgeResult {
  return { ok: true, place: { id: event.eventId } };
}

/** A bridge that calls its target, or reads its answers, in another way. */
function sending(
  other: (to: BridgeTarget, entries: readonly BridgedEvent[]) => ReturnType<BridgeTarget['send']>,
): BridgeTamper {
  return { tamperTarget: (to) => ({ ...to, send: (entries) => other(to, entries) }) };
}

/** Answers for an entry that was refused together with others as it did then. */
function neverAlone(to: BridgeTarget): BridgeTarget {
  const refusals = new Map<string, BridgeResult>();
  return {
    ...to,
    send: async (entries) => {
      const [first] = entries;
      const before = refusals.get(first?.event.eventId ?? '');
      if (entries.length === 1 && before !== undefined) return [before];
      const results = await to.send(entries);
      for (const [index, result] of results.entries())
        if (isPermanent(result)) refusals.set(entries[index]?.event.eventId ?? '', result);
      return results;
    },
  };
}
