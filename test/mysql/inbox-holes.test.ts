import type { PoolConnection } from 'mysql2/promise';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { CLOCK_SKEW_MS } from '../../lambdas/runtime/base/clock.ts';
import { PoisonMessage } from '../../lambdas/runtime/base/errors.ts';
import type { Inbox } from '../../lambdas/runtime/consume/inbox-port.ts';
import type { Claim, Message } from '../../lambdas/runtime/inbox/inbox.ts';
import { EFFECTS_MAX } from '../../lambdas/runtime/inbox/inbox-effect.ts';
import { mysql2 } from '../../lambdas/runtime/mysql/databases.ts';
import { mintEventId } from '../../lambdas/runtime/store/event-id.ts';
import { deleteExpiredMessages } from '../../lambdas/runtime/store/mysql/inbox-retention.ts';
import { manualClock } from '../../testing/index.ts';
import { FUNCTION_MS, inTime, LEASE_MS, sent } from '../postgres/inbox-rig.ts';
import { inboxOn, PAYMENT, shift } from './inbox-rig.ts';
import type { Change } from './support/changed-database.ts';
import { describeHoles, type Hole, type MakeDatabase } from './support/holes.ts';
import { type Rig, startRig } from './support/rig.ts';

let rig: Rig;
let impatient: ReturnType<Rig['poolOf']>;
let clock = manualClock(Date.now());
const EVENT = {} as never;
const broken = new Error('bank answered 503');

beforeAll(async () => {
  rig = await startRig('mysql-inbox-holes');
  await rig.pool.query(PAYMENT);
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
  await rig.pool.query('DELETE FROM mailroom.payment');
});

const message = (): Message => ({ eventId: mintEventId(clock.now(), 2), messageId: 'first' });
const options = (more = {}) => ({
  alone: true,
  firstReceive: false,
  endsBy: clock.now() + FUNCTION_MS,
  ...more,
});
const hurried = () => ({ ...clock, sleep: async () => {} });
const sound = () => inboxOn(rig.database, clock);
const holed = (make: MakeDatabase, change?: Change) => inboxOn(make(change), hurried());

async function claimed(what: Message, inbox: Inbox = sound()): Promise<Claim> {
  const result = await inbox.claim(what, options());
  if (result.status !== 'claimed') throw new Error(`The claim was refused: ${result.status}`);
  return result.claim;
}

async function pass(ms: number): Promise<void> {
  await shift(rig.rows, ms);
  await clock.advance(ms);
}

/** A claim whose lease has passed, and the one that has taken its message over. */
async function takenOver(start?: string): Promise<{ what: Message; old: Claim; held: Claim }> {
  const what = message();
  const old = await claimed(what);
  if (start !== undefined) await sound().startEffect({ claim: old, name: start, run: 1 });
  await pass(LEASE_MS + 1_000);
  return { what, old, held: await claimed(what) };
}

const isDone = (work: Promise<unknown>) =>
  work.then(
    () => true,
    () => false,
  );
const status = async ({ eventId }: Message) => (await sound().read(eventId))?.status;
const effect = async ({ eventId }: Message) => (await sound().read(eventId))?.effects?.charge;
const pay = async (tx: unknown) => {
  await (tx as PoolConnection).query("INSERT INTO mailroom.payment (event_id) VALUES ('e')");
  return {};
};
const lost = () => Object.assign(new Error('Connection lost'), { fatal: true });

const KEY = 'FROM_BASE64(?)';
const FENCE = ['i.fence = FROM_BASE64(?)', 'FROM_BASE64(?) IS NOT NULL'] as const;
const PRIMARY =
  "CAST(@@global.read_only AS CHAR) IN ('0', 'OFF') AND CAST(@@global.innodb_read_only AS CHAR) IN ('0', 'OFF')";

const HOLES: readonly Hole[] = [
  {
    rule: 'a message that another worker holds is not claimed',
    changes: [["(i.status = 'FAILED')", 'TRUE']],
    isBroken: async (make) => {
      const what = message();
      await claimed(what);
      return (await holed(make).claim(what, options())).status === 'claimed';
    },
  },
  {
    rule: 'a message whose last claims ended without a result is claimed alone',
    changes: [['i.unfinished < 2', 'TRUE']],
    isBroken: async (make) => {
      const what = message();
      for (let times = 0; times < 2; times += 1)
        await sound().cutOff(await claimed(what), broken, clock.now(), {});
      return (await holed(make).claim(what, options({ alone: false }))).status === 'claimed';
    },
  },
  {
    rule: 'a message that was rejected under an id is not claimed under it again',
    changes: [
      [
        "INSTR(COALESCE(i.rejected_ids, ''), CONVERT(FROM_BASE64(?) USING utf8mb4)) = 0",
        'FROM_BASE64(?) IS NOT NULL',
      ],
    ],
    isBroken: async (make) => {
      const what = message();
      await sound().reject(await claimed(what), broken, {});
      await sound().fail(await claimed({ ...what, messageId: 'second' }), broken, clock.now(), {});
      return (await holed(make).claim(what, options())).status === 'claimed';
    },
  },
  {
    rule: 'a worker that has lost its message does not end it',
    changes: [FENCE],
    isBroken: async (make) => {
      const { what, old } = await takenOver();
      await holed(make).fail(old, broken, clock.now(), {});
      return (await status(what)) !== 'PROCESSING';
    },
  },
  {
    rule: 'a claim that has ended does not end again in another way',
    changes: [["(i.status = 'PROCESSING') AND", '']],
    isBroken: async (make) => {
      const what = message();
      const held = await claimed(what);
      await sound().fail(held, broken, clock.now(), {});
      await holed(make).complete(held, undefined);
      return (await status(what)) === 'PROCESSED';
    },
  },
  {
    rule: 'a message that a worker holds is not rejected without its claim',
    changes: [[' AND NOT COALESCE(i.lease_until >= UTC_TIMESTAMP(6), FALSE)', '']],
    isBroken: async (make) => {
      const what = message();
      await claimed(what);
      await holed(make).rejectUnclaimed(what, new PoisonMessage('no'));
      return (await status(what)) === 'REJECTED';
    },
  },
  {
    rule: 'a commit without a claim leaves a row that exists as it is',
    changes: [
      [
        'ON DUPLICATE KEY UPDATE fence = fence',
        'ON DUPLICATE KEY UPDATE fence = VALUES(fence), status = VALUES(status)',
      ],
    ],
    isBroken: async (make) => {
      const what = message();
      await sound().commitUnclaimed(what, 1, pay, EVENT, inTime);
      await holed(make).commitUnclaimed(what, 1, pay, EVENT, inTime);
      return (await rig.rows('SELECT 1 FROM mailroom.payment')).length > 1;
    },
  },
  {
    rule: 'a commit holds its message against a takeover',
    changes: [
      [
        `${FENCE[0]} AND i.consumer = ${KEY} AND i.event_id = ${KEY} FOR UPDATE`,
        `${FENCE[0]} AND i.consumer = ${KEY} AND i.event_id = ${KEY}`,
      ],
    ],
    isBroken: async (make) => {
      const what = message();
      const held = await claimed(what);
      await pass(LEASE_MS + 1_000);
      let meanwhile: unknown;
      const work = async () => {
        meanwhile = (await inboxOn(mysql2(impatient), clock).claim(what, options())).status;
        return {};
      };
      await holed(make).commit(held, work, EVENT, sent);
      return meanwhile === 'claimed';
    },
  },
  {
    rule: 'a commit whose worker has lost the message does nothing',
    changes: [FENCE],
    isBroken: async (make) => {
      const { old } = await takenOver();
      await holed(make).commit(old, pay, EVENT, sent);
      return (await rig.rows('SELECT 1 FROM mailroom.payment')).length > 0;
    },
  },
  {
    rule: 'a commit whose handler has ended the transaction fails',
    changes: [['RELEASE SAVEPOINT mailroom_inbox', 'DO 1']],
    isBroken: async (make) => {
      const work = async (tx: unknown) => {
        for (const text of ['START TRANSACTION', 'COMMIT']) await (tx as PoolConnection).query(text);
        return {};
      };
      const end = await holed(make).commitUnclaimed(message(), 1, work, EVENT, inTime);
      return end.status === 'committed';
    },
  },
  {
    rule: 'a COMMIT that still runs on the server is not taken for a rollback',
    changes: [[' FOR UPDATE NOWAIT', '']],
    isBroken: async (make) => {
      const held = await claimed(message());
      let running: PoolConnection | undefined;
      const inbox = holed(make, (query, send, connection) => {
        if (query.sql === 'ROLLBACK' && connection === running) throw lost();
        if (query.sql !== 'COMMIT') return send(query);
        running = connection as PoolConnection;
        throw lost();
      });
      const stays = async (tx: unknown) => {
        (tx as PoolConnection).destroy = () => {};
        return {};
      };
      const end = await inbox.commit(held, stays, EVENT, sent);
      await running?.query('COMMIT');
      running?.release();
      return end.status === 'failed' && end.wroteNothing;
    },
  },
  {
    rule: 'a server that cannot write proves no rollback',
    changes: [[PRIMARY, 'TRUE']],
    isBroken: async (make) => {
      const held = await claimed(message());
      const inbox = holed(make, async (query, send) => {
        if (query.sql !== 'COMMIT') return send(query);
        await send({ ...query, sql: 'ROLLBACK' });
        await rig.pool.query('SET GLOBAL read_only = 1');
        throw lost();
      });
      const end = await inbox
        .commit(held, pay, EVENT, sent)
        .finally(() => rig.pool.query('SET GLOBAL read_only = 0'));
      return end.status === 'failed' && end.wroteNothing;
    },
  },
  {
    rule: 'a message that is still held proves no commit',
    changes: [["i.status = 'PROCESSED' AND i.fence", 'i.fence']],
    isBroken: async (make) => {
      const held = await claimed(message());
      const inbox = holed(make, async (query, send) => {
        if (query.sql !== 'COMMIT') return send(query);
        await send({ ...query, sql: 'ROLLBACK' });
        throw lost();
      });
      return (await inbox.commit(held, pay, EVENT, sent)).status === 'committed';
    },
  },
  {
    rule: 'the commit of another run proves no commit of this one',
    changes: [FENCE],
    isBroken: async (make) => {
      const what = message();
      const inbox = holed(make, async (query, send) => {
        if (query.sql !== 'COMMIT') return send(query);
        await send({ ...query, sql: 'ROLLBACK' });
        await sound().commitUnclaimed(what, 1, pay, EVENT, inTime);
        throw lost();
      });
      return (await inbox.commitUnclaimed(what, 1, pay, EVENT, inTime)).status === 'committed';
    },
  },
  {
    rule: 'a worker that has lost its message starts no effect',
    changes: [FENCE],
    isBroken: async (make) => {
      const { old } = await takenOver();
      return isDone(holed(make).startEffect({ claim: old, name: 'charge', run: 1 }));
    },
  },
  {
    rule: 'a message is not taken over while an effect starts',
    changes: [['MICROSECOND)))\n  FOR UPDATE', 'MICROSECOND)))']],
    isBroken: async (make) => {
      const what = message();
      const held = await claimed(what);
      await pass(LEASE_MS + 1_000);
      let meanwhile: unknown;
      const inbox = holed(make, async (query, send) => {
        if (query.sql.startsWith('REPLACE'))
          meanwhile = (await inboxOn(mysql2(impatient), clock).claim(what, options())).status;
        return send(query);
      });
      const started = await isDone(inbox.startEffect({ claim: held, name: 'charge', run: 1 }));
      return started && meanwhile === 'claimed';
    },
  },
  {
    rule: `a message has ${EFFECTS_MAX} effects at most`,
    changes: [[`< ${EFFECTS_MAX}`, `< ${EFFECTS_MAX + 1}`]],
    isBroken: async (make) => {
      const held = await claimed(message());
      for (let run = 1; run <= EFFECTS_MAX; run += 1)
        await sound().startEffect({ claim: held, name: `ship.${run}`, run });
      return isDone(holed(make).startEffect({ claim: held, name: 'charge', run: 65 }));
    },
  },
  {
    rule: 'a late call does not start an effect that has ended',
    changes: [['OR e.run < ?', 'OR ? > 0']],
    isBroken: async (make) => {
      const call = { claim: await claimed(message()), name: 'charge', run: 1 };
      await sound().startEffect(call);
      await sound().finishEffect(call, { status: 'RELEASED', error: broken, nothingHappened: false });
      return isDone(holed(make).startEffect(call));
    },
  },
  {
    rule: 'a late call does not start an effect that a later one has started',
    changes: [['e.run <= ?', '? > 0']],
    isBroken: async (make) => {
      const claim = await claimed(message());
      await sound().startEffect({ claim, name: 'charge', run: 2 });
      return isDone(holed(make).startEffect({ claim, name: 'charge', run: 1 }));
    },
  },
  {
    rule: 'an effect of an earlier claim is not started while its function may run',
    changes: [['(e.fence = i.fence AND e.run <= ?)', '(e.run <= ?)']],
    isBroken: async (make) => {
      const { held } = await takenOver('charge');
      return isDone(holed(make).startEffect({ claim: held, name: 'charge', run: 1 }));
    },
  },
  {
    rule: 'a function that ran an effect has stopped by every clock before the effect starts again',
    changes: [[`e.ends_by < UTC_TIMESTAMP(6) - INTERVAL ${CLOCK_SKEW_MS * 1_000} MICROSECOND`, 'TRUE']],
    isBroken: async (make) => {
      const { held } = await takenOver('charge');
      return isDone(holed(make).startEffect({ claim: held, name: 'charge', run: 1 }));
    },
  },
  {
    rule: 'an effect that has ended does not end again in another way',
    changes: [["AND status = 'IN_PROGRESS' AND", 'AND']],
    isBroken: async (make) => {
      const what = message();
      const call = { claim: await claimed(what), name: 'charge', run: 1 };
      await sound().startEffect(call);
      await sound().finishEffect(call, { status: 'COMPLETED', result: '7' });
      await isDone(
        holed(make).finishEffect(call, { status: 'RELEASED', error: broken, nothingHappened: true }),
      );
      return (await effect(what))?.status !== 'COMPLETED';
    },
  },
  {
    rule: 'an effect that another claim has started is not ended',
    changes: [[`AND fence = ${KEY}`, `AND ${KEY} IS NOT NULL`]],
    isBroken: async (make) => {
      const what = message();
      const old = await claimed(what);
      await sound().startEffect({ claim: old, name: 'charge', run: 1 });
      await pass(FUNCTION_MS + 10_000);
      await sound().startEffect({ claim: await claimed(what), name: 'charge', run: 1 });
      const end = { status: 'COMPLETED', result: '7' } as const;
      await isDone(holed(make).finishEffect({ claim: old, name: 'charge', run: 1 }, end));
      return (await effect(what))?.status === 'COMPLETED';
    },
  },
  {
    rule: 'an effect that a later call has started is not ended by an earlier one',
    changes: [['AND run = ?', 'AND ? > 0']],
    isBroken: async (make) => {
      const what = message();
      const claim = await claimed(what);
      await sound().startEffect({ claim, name: 'charge', run: 2 });
      const end = { status: 'COMPLETED', result: '7' } as const;
      await isDone(holed(make).finishEffect({ claim, name: 'charge', run: 1 }, end));
      return (await effect(what))?.status === 'COMPLETED';
    },
  },
  {
    rule: 'a worker that has lost its message does not renew its lease',
    changes: [FENCE],
    isBroken: async (make) => {
      const { old } = await takenOver();
      return isDone(holed(make).renew(old));
    },
  },
  {
    rule: 'a lease ends with its function',
    changes: [
      [
        'LEAST(UTC_TIMESTAMP(6) + INTERVAL ROUND(? * 1000) MICROSECOND, ends_by)',
        'UTC_TIMESTAMP(6) + INTERVAL ROUND(? * 1000) MICROSECOND',
      ],
    ],
    isBroken: async (make) => {
      const what = message();
      const endsBy = clock.now() + LEASE_MS / 2;
      const result = await sound().claim(what, options({ endsBy }));
      if (result.status === 'claimed') await holed(make).renew(result.claim);
      const [row] = await rig.rows('SELECT IF(lease_until > ends_by, 1, 0) AS is_longer FROM mailroom.inbox');
      return row?.is_longer === 1;
    },
  },
  {
    rule: 'a renewal does not wait for a commit of its own worker',
    changes: [[' SKIP LOCKED', '']],
    isBroken: async (make) => {
      const held = await claimed(message());
      let isRenewed = false;
      const work = async () => {
        isRenewed = await isDone(holed(make).renew(held));
        return {};
      };
      await sound().commit(held, work, EVENT, sent);
      return !isRenewed;
    },
  },
  {
    rule: 'a message whose retention is not over is not deleted',
    changes: [['expires_at < UTC_TIMESTAMP(6)', 'TRUE']],
    isBroken: async (make) => {
      await sound().complete(await claimed(message()), undefined);
      const database = make();
      return (await database.transaction((tx) => deleteExpiredMessages(database.in(tx)))) > 0;
    },
  },
];

describeHoles(HOLES, () => impatient);
