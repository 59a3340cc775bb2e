import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { PoisonMessage } from '../../lambdas/runtime/base/errors.ts';
import type { Inbox } from '../../lambdas/runtime/consume/inbox-port.ts';
import type { Claim, Message } from '../../lambdas/runtime/inbox/inbox.ts';
import { asSeen } from '../../lambdas/runtime/inbox/inbox-conditions.ts';
import type { FinalDecision, MessageToDecide } from '../../lambdas/runtime/inbox/inbox-operator.ts';
import { mysql2 } from '../../lambdas/runtime/mysql/databases.ts';
import { mintEventId } from '../../lambdas/runtime/store/event-id.ts';
import { lastKey } from '../../lambdas/runtime/store/keys.ts';
import { type LastSequence, NOTHING_APPLIED } from '../../lambdas/runtime/store/last-sequence.ts';
import { mysqlInboxChanges } from '../../lambdas/runtime/store/mysql/inbox-operator.ts';
import { readable } from '../../lambdas/runtime/store/stored-rows.ts';
import { manualClock } from '../../testing/index.ts';
import { FUNCTION_MS, inTime, LEASE_MS } from '../postgres/inbox-rig.ts';
import { inboxOn, shift } from './inbox-rig.ts';
import { type Change, changedDatabase } from './support/changed-database.ts';
import { describeHoles, type Hole, type MakeDatabase } from './support/holes.ts';
import { type Rig, startRig } from './support/rig.ts';

let rig: Rig;
/** Its sessions wait for a lock for a second. */
let impatient: ReturnType<Rig['poolOf']>;
let clock = manualClock(Date.now());

beforeAll(async () => {
  rig = await startRig('mysql-order-holes');
  impatient = rig.poolOf();
  impatient.on('connection', (connection) => {
    connection.query('SET SESSION innodb_lock_wait_timeout = 1');
  });
});
afterAll(async () => {
  await impatient.end();
  await rig.close();
});
beforeEach(async () => {
  clock = manualClock(Date.now());
  await rig.clear();
});

const KEY = lastKey({
  consumer: 'worker',
  source: 'shop',
  group: 'strict',
  aggregateType: 'Thing',
  aggregateId: 'thing-1',
}).PK;
const EVENT = {} as never;
const ADA = { by: 'ada', reason: 'paid by phone' };

const sound = () => inboxOn(rig.database, clock);
const hurried = () => ({ ...clock, sleep: async () => {} });

/** The first event of an aggregate, of which its gate has read that no event was applied. */
const first = (seen: LastSequence = NOTHING_APPLIED): Message => ({
  eventId: mintEventId(clock.now(), 2),
  messageId: 'first',
  place: { order: { key: KEY, mode: 'strict', sequence: 1 }, seen, skipsRejected: false },
});
const nothing = async () => ({});
const applies = async (inbox: Inbox, message: Message, work = nothing) =>
  (await inbox.commitUnclaimed(message, 1, work, EVENT, inTime)).status === 'committed';

const unordered = (): Message => ({ eventId: mintEventId(clock.now(), 2), messageId: 'first' });
async function claimed(message: Message): Promise<Claim> {
  const options = { alone: true, firstReceive: false, endsBy: clock.now() + FUNCTION_MS };
  const result = await sound().claim(message, options);
  if (result.status !== 'claimed') throw new Error(`The claim was refused: ${result.status}`);
  return result.claim;
}
const fails = (claim: Claim) => sound().fail(claim, new Error('no'), clock.now(), {});
const call = (claim: Claim) => ({ claim, name: 'charge', run: 1 });
async function pass(ms: number): Promise<void> {
  await shift(rig.rows, ms);
  await clock.advance(ms);
}

const databaseOf: MakeDatabase = () => rig.database;
const changes = (make: MakeDatabase, change?: Change) =>
  mysqlInboxChanges({ database: make(change), clock: hurried() });
const decision = ({ eventId }: Message): FinalDecision => ({
  ...ADA,
  eventId,
  status: 'PROCESSED',
  fence: 'decided',
});
const resolves = async (message: Message, { row, decide }: MessageToDecide, work = async () => {}) =>
  (await decide(decision(message), asSeen(readable(row)), { work })) === 'done';

/** Decides about a message that has changed since it was read. */
async function decidedAfter(
  make: MakeDatabase,
  message: Message,
  meanwhile: () => Promise<unknown>,
): Promise<boolean> {
  const read = await changes(make).read('worker', message.eventId);
  await meanwhile();
  return resolves(message, read);
}

/** Waits until a transaction waits for the lock of another one. */
const oneWaits = () =>
  vi.waitFor(
    async () => {
      const [waits] = await rig.rows("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'");
      if (Number(waits?.Value) === 0) throw new Error('None waits.');
    },
    { timeout: 60_000, interval: 10 },
  );

const FENCE = ['i.fence = FROM_BASE64(?)', 'FROM_BASE64(?) IS NOT NULL'] as const;
const EFFECTS =
  'SELECT COUNT(*) FROM mailroom.effect e WHERE e.consumer = i.consumer AND e.event_id = i.event_id';

const HOLES: readonly Hole[] = [
  {
    rule: 'the last applied sequence is raised only from the number that was read',
    changes: [['AND last = ?', 'AND ? IS NOT NULL']],
    isBroken: async (make) => {
      const late = first();
      await applies(sound(), first());
      return applies(inboxOn(make(), clock), late);
    },
  },
  {
    rule: 'a sequence begins once',
    changes: [['ON DUPLICATE KEY UPDATE last = last', 'ON DUPLICATE KEY UPDATE last = 0']],
    isBroken: async (make) => {
      const late = first();
      await applies(sound(), first());
      return applies(inboxOn(make(), clock), late);
    },
  },
  {
    rule: 'no other event of the aggregate is applied while a handler runs',
    changes: [['AND last = ? FOR UPDATE', 'AND last = ?']],
    isBroken: async (make) => {
      const begun = { last: 0, exists: true };
      await rig.rows(
        "INSERT INTO mailroom.last_sequence VALUES ('worker', ?, 0, NULL, UTC_TIMESTAMP(6))",
        KEY.slice('LAST#worker#'.length),
      );
      let isOther = false;
      const work = async () => {
        isOther = await applies(inboxOn(mysql2(impatient), clock), first(begun));
        return {};
      };
      return (await applies(inboxOn(make(), clock), first(begun), work)) && isOther;
    },
  },
  {
    rule: 'a decision loses against a claim that has ended since',
    changes: [FENCE],
    isBroken: async (make) => {
      const message = unordered();
      await fails(await claimed(message));
      return decidedAfter(make, message, async () => fails(await claimed(message)));
    },
  },
  {
    rule: 'a decision loses against a renewal',
    changes: [
      ["ROUND(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', i.lease_until) / 1000) = ?", '? IS NOT NULL'],
    ],
    isBroken: async (make) => {
      const message = unordered();
      const held = await claimed(message);
      await pass(LEASE_MS + 1_000);
      return decidedAfter(make, message, () => sound().renew(held));
    },
  },
  {
    rule: 'a decision loses against the start of an effect',
    changes: [[`(${EFFECTS}) = ?`, '? IS NOT NULL']],
    isBroken: async (make) => {
      const message = unordered();
      const held = await claimed(message);
      await pass(LEASE_MS + 1_000);
      return decidedAfter(make, message, () => sound().startEffect(call(held)));
    },
  },
  {
    rule: 'a decision loses against the end of an effect',
    changes: [['AND e.status = CONVERT(FROM_BASE64(?) USING utf8mb4)', 'AND FROM_BASE64(?) IS NOT NULL']],
    isBroken: async (make) => {
      const message = unordered();
      const held = await claimed(message);
      await sound().startEffect(call(held));
      await pass(LEASE_MS + 1_000);
      const end = { status: 'COMPLETED', result: '7' } as const;
      return decidedAfter(make, message, () => sound().finishEffect(call(held), end));
    },
  },
  {
    rule: 'a decision loses against the start of an effect that has not committed yet',
    changes: [[`(${EFFECTS}) = ?`, '? IS NOT NULL']],
    isBroken: async (make) => {
      const message = unordered();
      const held = await claimed(message);
      await pass(LEASE_MS + 1_000);
      const read = await changes(make).read('worker', message.eventId);
      let commits: () => void = () => {};
      let isReady: () => void = () => {};
      const ready = new Promise<void>((resolve) => {
        isReady = resolve;
      });
      const database = changedDatabase(rig.pool, async (query, send) => {
        if (query.sql === 'COMMIT')
          await new Promise<void>((resolve) => {
            commits = resolve;
            isReady();
          });
        return send(query);
      });
      const started = inboxOn(database, clock).startEffect(call(held));
      await ready;
      const decided = resolves(message, read);
      await oneWaits();
      commits();
      await started;
      return decided;
    },
  },
  {
    rule: 'a decision about a message without a row loses against a claim',
    changes: [FENCE],
    isBroken: (make) => {
      const message = unordered();
      return decidedAfter(make, message, () => claimed(message));
    },
  },
  {
    rule: 'another change of the message proves no decision',
    changes: [FENCE],
    isBroken: async (make) => {
      const message = unordered();
      await fails(await claimed(message));
      const rollsBack: Change = async (query, send) => {
        if (query.sql !== 'COMMIT') return send(query);
        await send({ ...query, sql: 'ROLLBACK' });
        throw Object.assign(new Error('Connection lost'), { fatal: true });
      };
      const read = await changes(make, rollsBack).read('worker', message.eventId);
      return resolves(message, read).catch(() => false);
    },
  },
  {
    rule: 'only a message that was rejected as too old is allowed to run',
    changes: [['i.reason = CONVERT(FROM_BASE64(?) USING utf8mb4)', 'FROM_BASE64(?) IS NOT NULL']],
    isBroken: async (make) => {
      const message = unordered();
      await sound().reject(await claimed(message), new PoisonMessage('no'), {});
      return changes(make).allow('worker', { ...ADA, eventId: message.eventId });
    },
  },
];

describeHoles(HOLES, () => rig.pool);

describe('what commits with a decision', () => {
  test.each([
    ['has changed', true],
    ['was claimed for the first time', false],
  ])('does not begin if the message %s since it was read', async (_text, isKnown) => {
    const message = unordered();
    if (isKnown) await fails(await claimed(message));
    const read = await changes(databaseOf).read('worker', message.eventId);
    await claimed(message);
    let hasBegun = false;
    const work = async () => {
      hasBegun = true;
    };
    expect([await resolves(message, read, work), hasBegun]).toEqual([false, false]);
  });

  test('is rolled back if an effect of the message ends meanwhile', async () => {
    const message = unordered();
    const held = await claimed(message);
    await sound().startEffect(call(held));
    await pass(LEASE_MS + 1_000);
    const read = await changes(databaseOf).read('worker', message.eventId);
    const end = { status: 'COMPLETED', result: '7' } as const;
    expect(await resolves(message, read, () => sound().finishEffect(call(held), end))).toBe(false);
    expect(await rig.rows('SELECT command FROM mailroom.operation')).toEqual([]);
  });
});
