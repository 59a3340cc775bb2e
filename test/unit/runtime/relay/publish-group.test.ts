import { beforeEach, expect, test } from 'vitest';
import type { MailroomError } from '../../../../lambdas/runtime/base/errors.ts';
import type { ClaimedEvent } from '../../../../lambdas/runtime/relay/database-transitions.ts';
import { type GroupContext, publishGroup } from '../../../../lambdas/runtime/relay/publish-group.ts';
import { publishLimits, startPass } from '../../../../lambdas/runtime/relay/relay-context.ts';
import { systemRandomBytes } from '../../../../lambdas/runtime/store/event-id.ts';
import { type ManualClock, manualClock } from '../../../../testing/manual-clock.ts';
import { memoryBus } from '../../../../testing/memory-bus.ts';
import { memoryTelemetry } from '../../../../testing/memory-telemetry.ts';

const LEASE_MS = 30_000;
/** A lease is too short with this or less of it left. */
const TOO_SHORT_MS = 7_000;

let clock: ManualClock;
let calls: string[];
let bus: ReturnType<typeof memoryBus>;
/** The time that a renewal takes, by event. */
let renewal: Record<string, number | 'lost'>;

beforeEach(() => {
  clock = manualClock();
  calls = [];
  bus = memoryBus();
  renewal = {};
});

/** Claimed events. @param leftMs - what is left of their lease */
function claimed(leftMs: number, ...ids: string[]): ClaimedEvent[] {
  return ids.map((eventId) => ({
    eventId,
    fence: 'f',
    leaseUntil: clock.now() + leftMs,
    attempts: 0,
    entry: { source: 'orders', detailType: 'Placed', detail: JSON.stringify({ eventId }) },
  }));
}

const list = (rows: readonly { readonly eventId: string }[]) => rows.map(({ eventId }) => eventId).join(' ');

function publish(rows: readonly ClaimedEvent[], hasTime = () => true): Promise<number> {
  const context: GroupContext = {
    ...publishLimits(16),
    config: { publishTimeoutMs: 5_000 },
    bus,
    clock,
    random: systemRandomBytes,
    telemetry: memoryTelemetry(),
    declared: { has: () => true, report: () => {} },
    transitions: {
      claim: async () => [],
      markPublished: async (some) => {
        if (some.length > 0) calls.push(`mark ${list(some)}`);
        return [];
      },
      failEvent: async (row: ClaimedEvent, { code }: MailroomError, refused: boolean) => {
        calls.push(`${refused ? 'refuse' : 'fail'} ${row.eventId} ${code}`);
      },
      release: async (some, afterMs) => {
        if (some.length > 0) calls.push(`release ${list(some)} ${afterMs}`);
      },
      renew: async (row) => {
        const takes = renewal[row.eventId] ?? 0;
        calls.push(`renew ${row.eventId}`);
        if (takes === 'lost') return undefined;
        const leaseUntil = clock.now() + LEASE_MS;
        clock.jumpTo(clock.now() + takes);
        return { ...row, leaseUntil };
      },
    },
  };
  return publishGroup(context, rows, startPass(context), hasTime);
}

test('publishes a group under its lease, and renews nothing', async () => {
  expect(await publish(claimed(TOO_SHORT_MS + 1, 'a', 'b'))).toBe(2);
  expect(calls).toEqual(['mark a b']);
});

test('publishes each event of a group that outlasted its lease under its own lease', async () => {
  expect(await publish(claimed(TOO_SHORT_MS, 'a', 'b'))).toBe(2);
  expect(calls).toEqual(['renew a', 'mark a', 'renew b', 'mark b']);
  expect(bus.calls()).toHaveLength(2);
});

test('counts an attempt of the event only that outlasts its own lease, too', async () => {
  renewal.a = LEASE_MS - TOO_SHORT_MS;
  expect(await publish(claimed(0, 'a', 'b'))).toBe(1);
  expect(calls).toEqual(['renew a', 'fail a PUBLISH_TIMEOUT', 'renew b', 'mark b']);
});

test('leaves events alone that another relay has claimed by then', async () => {
  renewal.a = 'lost';
  expect(await publish(claimed(-1, 'a', 'b'))).toBe(1);
  expect(calls).toEqual(['renew a', 'renew b', 'mark b']);
});

test('releases a late group without an attempt if the relay stops', async () => {
  expect(await publish(claimed(0, 'a', 'b'), () => false)).toBe(0);
  expect(calls).toEqual(['release a b 0']);
});

test('releases the rest of a late group without an attempt if the relay stops in between', async () => {
  renewal.a = LEASE_MS;
  let asked = 0;
  const stopsAt = (n: number) => () => {
    asked += 1;
    return asked < n;
  };
  // Asked for both rows, for the group, and before the first renewal.
  await publish(claimed(0, 'a', 'b'), stopsAt(5));
  expect(calls).toEqual(['renew a', 'release a 0', 'release b 0']);
});

test('releases events that a claim did not read, and refuses those that are too large for the bus', async () => {
  const [a, b, c] = claimed(LEASE_MS, 'a', 'b', 'c') as [ClaimedEvent, ClaimedEvent, ClaimedEvent];
  expect(await publish([{ ...a, unread: 'later' }, { ...b, unread: 'too-large' }, c])).toBe(1);
  expect(calls).toEqual(['release a 0', 'refuse b EVENT_TOO_LARGE', 'mark c']);
});
