import { type Mutant, mutantsOf } from './mutant.ts';

/** The storage in PostgreSQL, as far as no server is needed; `test/postgres/statement-holes.test.ts` takes clauses of statements away. */
// biome-ignore format: a line for each mutant
export const postgresMutants: readonly Mutant[] = [
  ...mutantsOf('postgres/claim-range.ts', 'claim-range', [
    ['a relay reads the whole queue again and again', 'const isFull = fully || began >= fullAt || began < endedAt;', 'const isFull = fully || bound === FROM_THE_START;'],
    ['a claim reads the whole queue if that is asked for', 'const isFull = fully ||', 'const isFull ='],
    ['the clock of a relay that is set back postpones no full reading', 'began >= fullAt || began < endedAt', 'began >= fullAt'],
    ['claims begin behind the oldest live row', 'isFull ? FROM_THE_START : before', 'FROM_THE_START'],
    ['a full reading replaces the bound', 'isFull || bound === before', 'bound === before'],
    ['a claim that began before a full reading does not move the bound past it', '(isFull || bound === before)', 'true'],
    ['one claim at a time reads everything', 'if (isFull) fullAt = began + MINUTE_MS;', ''],
    ['full readings of a long queue take a tenth of the time', 'Math.max(FULL_EVERY_MS, PAUSES_PER_READING * tookMs)', 'FULL_EVERY_MS'],
    ['a paused process does not postpone full readings for long', 'Math.min(MINUTE_MS, pauseMs)', 'pauseMs'],
  ]),
  ...mutantsOf('postgres/commit-outcome.ts', 'commit-outcome', [
    ['the status of a transaction id proves no commit: it may be of another transaction', "if (done) return 'committed';", "if (done || status === 'committed') return 'committed';"],
    ['a row proves a commit', "if (done) return 'committed';", ''],
    ['a standby does not tell that a transaction was aborted', 'CASE WHEN NOT pg_is_in_recovery() THEN pg_xact_status($1::text::xid8) END AS status', 'pg_xact_status($1::text::xid8) AS status'],
    ['a transaction whose id is not assigned yet was not committed', "=== '22023' ? 'aborted' : undefined", "=== '22023' ? undefined : undefined"],
    ['a database that does not answer proves nothing', "sqlState(error) === '22023' ? 'aborted' : undefined", "'aborted'"],
    ['a transaction in progress may still be committed', "if (status === 'aborted') return 'aborted';", "if (status !== 'committed') return 'aborted';"],
    ['a row that was written after a question began is looked for again', 'if (hasEnded || isOver(tries))', "if (status === 'committed' || isOver(tries))"],
    ['an id that is committed without the row is asked about twice, no more', "hasEnded = status === 'committed';", 'hasEnded = false;'],
    ['a transaction that has not ended is asked about again', "hasEnded = status === 'committed';", 'hasEnded = true;'],
    ['a producer asks for longer than a server keeps the transaction of a client that is gone', 'OUTCOME_WAIT_MS = 40_000', 'OUTCOME_WAIT_MS = 20_000'],
  ]),
  ...mutantsOf('postgres/publish-group.ts', 'publish-group', [
    ['an event that its claim did not read is released', "rows.filter(({ unread }) => unread === 'later')", '[]'],
    ['an event that is too large for the bus is refused', "await transitions.failEvent(row, tooLarge(row), true)", 'await transitions.release([row], 0)'],
    ['only events whose envelope was read are published', 'const read = rows.filter(({ unread }) => unread === undefined);', 'const read = rows;'],
    ['a group that outlasted its lease is published row by row', "outcomes.push(...(await publishEach(context, late, breaker, hasTime)))", 'await transitions.release(late, 0)'],
    ['an event is published under its own lease only while the relay holds it', 'const held = await transitions.renew(row);', 'const held = (await transitions.renew(row)) ?? { ...row, leaseUntil: Number.POSITIVE_INFINITY };'],
    ['an event that outlasts its own lease is counted as failed', 'for (const event of late) await transitions.failEvent(event, outOfLease(event), false);', 'await transitions.release(late, 0);'],
    ['a relay that stops counts no attempt', 'if (!hasTime()) await transitions.release(late, 0); else', ''],
  ]),
  ...mutantsOf('postgres/wake-listener.ts', 'wake-listener', [
    ['a relay sleeps only with the lock', 'await used.query(FALL_ASLEEP);', ''],
    ['a relay that has fallen asleep looks at the queue once more', "if (session === used) state = 'asleep'; wake();", "if (session === used) state = 'asleep';"],
    ['a relay that is woken releases the lock', 'void session?.query(AWAKE).catch(() => {});', ';'],
    ['a connection without notifications takes no lock', 'if (!(await withDeadline(clock, PROOF_MS, proven, () => false)))', 'if (!(await Promise.race([proven, true])))'],
    ['a connection that failed is replaced after a pause', "state === 'awake' && clock.now() >= retryAt", "state === 'awake'"],
    ['a relay whose connection ended does not sleep', "session = undefined; state = 'awake'; isChecking = false;", 'session = undefined; isChecking = false;'],
    ['a connection that does not answer is replaced', "if (isChecking) return lose(checked, new Error('The connection did not answer.'));", ''],
  ]),
];
