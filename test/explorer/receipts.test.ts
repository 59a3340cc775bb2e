import { describe, expect, it } from 'vitest';
import { type ReceiptOptions, receiptTable } from '../../bench/alternatives/receipts.ts';
import type { Bus } from '../../lambdas/runtime/bus/event-bus.ts';
import type { EachUpdate, Item, Table } from '../../lambdas/runtime/store/table.ts';
import type { Actor, Budget } from '../../testing/explorer/actor.ts';
import {
  exploreScenario,
  type Scenario,
  timelineText,
  type Violation,
} from '../../testing/explorer/exploration.ts';
import { nearestViolation } from './holes.ts';
import { relayScenarios } from './relay-scenarios.ts';
import type { Tamper } from './relay-world.ts';
import { ONE_FAULT } from './rounds.ts';

/** How many tries of one PutEvents call a throttle lasts: all that the relay makes before it hands a batch back. */
const THROTTLED_CALLS = 3;

/** The scenarios in which a row is born by the outbox itself: its expiry is the first thing that breaks a rule. */
const BORN_HERE = 'a producer, then the stream';

/** The relay's scenarios on receipts instead of marks: see docs/adr/0011. */
function receipts(options: Partial<ReceiptOptions> = {}): Tamper {
  const everlasting = options.bornDays === 0;
  return {
    table: (table, { clock, random }) => receiptTable(table, { clock, random, ...options }),
    seeded: (row) => (everlasting || row.status === 'DEAD' ? row : { ...row, expiresAt: 9_999_999_999 }),
    seen: (items) => {
      const published = new Set(items.flatMap(({ eventIds }) => [...((eventIds ?? []) as Set<string>)]));
      const isPublished = ({ SK, status, expiresAt }: Item) =>
        status === 'PENDING' &&
        (everlasting || expiresAt !== undefined) &&
        published.has(String(SK).slice('EVENT#'.length));
      return items.map((item) => (isPublished(item) ? { ...item, status: 'PUBLISHED' } : item));
    },
  };
}

/** Receipts whose finders refuse a claim, and leave it at that. */
function unmarked(): Tamper {
  const { table: onReceipts, ...others } = receipts();
  const isFinders = ({ set }: EachUpdate) => set.status === 'PUBLISHED' && set.publishedBy === undefined;
  return {
    ...others,
    table: (table, actor, role) => {
      const updateEach: Table['updateEach'] = async (updates) =>
        updates.length > 0 && updates.every(isFinders) ? [] : table.updateEach(updates);
      return onReceipts?.({ ...table, updateEach }, actor, role) ?? table;
    },
  };
}

/** A bus that throttles the first event for a while, as busses do: no fault of a schedule. */
function throttlesFirst(): NonNullable<Tamper['bus']> {
  const calls = new WeakMap<Actor, number>();
  return (bus, _table, actor): Bus => ({
    put: async (entries, timeoutMs) => {
      const call = (calls.get(actor) ?? 0) + 1;
      calls.set(actor, call);
      if (call > THROTTLED_CALLS) return bus.put(entries, timeoutMs);
      const others = entries.length > 1 ? await bus.put(entries.slice(1), timeoutMs) : [];
      return [{ ok: false, code: 'ThrottlingException', message: 'Rate exceeded' }, ...others];
    },
  });
}

function scenario(where: string, tamper: Tamper, budget: Budget = { faults: 0, stalls: 0 }): Scenario {
  const found = relayScenarios({ actors: 2, budget }, tamper).find(({ name }) => name.includes(where));
  if (found === undefined) throw new Error(`There is no scenario "${where}"`);
  return found;
}

function text(violations: readonly Violation[]): string[] {
  return violations.map(({ what, timeline }) => `${what}\n${timelineText(timeline)}`);
}

describe('receipts instead of marks', () => {
  it('break the rule that TTL is set only when an event is PUBLISHED, where rows are born with their end', async () => {
    const violation = await nearestViolation(scenario(BORN_HERE, receipts(), ONE_FAULT.budget));
    expect(violation?.what).toBe('TTL may delete an event that is PENDING');
  });

  it('leave published rows for ever, where rows are born without', async () => {
    const violation = await nearestViolation(scenario('two events in one batch', receipts({ bornDays: 0 })));
    expect(violation?.what).toMatch(/is PUBLISHED and never expires/);
    expect(violation?.timeline).toHaveLength(2); // a publish and its receipt: the ordinary way
  });

  it('publish an event twice without a fault, where a claim does not look for one: its batch is handed back', async () => {
    const twoEvents = (tamper: Tamper) =>
      exploreScenario(scenario('two events in one batch', { ...tamper, bus: throttlesFirst() }));
    expect(text((await twoEvents({})).violations)).toEqual([]); // marks: the condition on the row refuses the claim
    expect(text((await twoEvents(receipts())).violations)).toEqual([]);
    const [violation] = (await twoEvents(receipts({ looksFirst: false }))).violations;
    expect(violation?.what).toMatch(/was published 2 times, without a fault/);
  });

  it.for(relayScenarios(ONE_FAULT, receipts()).filter(({ name }) => !name.includes(BORN_HERE)))(
    'break nothing else that was found: $name',
    async (explored) => {
      const { violations } = await exploreScenario(explored, { deviationsMax: 1 });
      expect(text(violations)).toEqual([]);
    },
  );

  it('leave an event stuck, where a claim that finds one does not mark the row: two faults', async () => {
    const budget = { faults: 2, stalls: 0 };
    const violation = await nearestViolation(scenario('two events in one batch', unmarked(), budget));
    expect(violation?.what).toMatch(/is stuck: PENDING, and no sweep comes to it/);
    const marked = await exploreScenario(scenario('two events in one batch', receipts(), budget), {
      deviationsMax: 3,
    });
    expect(text(marked.violations)).toEqual([]);
  });
});
