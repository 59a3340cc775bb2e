import { randomUUID } from 'node:crypto';
import { type Clock, withDeadline } from '../base/clock.ts';
import { asMailroomError } from '../base/errors.ts';
import { MINUTE_MS } from '../base/units.ts';
import type { Telemetry } from '../observe/telemetry.ts';
import type { WakeListener } from '../relay/database-relay.ts';
import { backoffMs } from '../store/backoff.ts';
import type { RandomBytes } from '../store/event-id.ts';

/** The members that Mailroom uses of a `Client` of `pg`. */
export interface PgListener {
  connect(): Promise<unknown>;
  query(text: string, values?: unknown[]): Promise<unknown>;
  on(event: 'notification', listener: (message: { readonly payload?: string | undefined }) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'end', listener: () => void): unknown;
  end(): Promise<void>;
}

/**
 * Wakes a relay that sleeps, in the statement that writes events.
 *
 * Invariant: **an event that commits while a relay sleeps wakes it.** A sleeping relay holds the lock alone. A transaction that gets a
 * share of it keeps that until it ends, so the relay falls asleep, and looks at the queue a last time, only after the commit; a transaction that does
 * not get one notifies. A notification makes commits wait for each other, so none is sent while relays are awake.
 */
export const WAKE = `woken AS MATERIALIZED (
  SELECT pg_catalog.pg_notify('mailroom'::text, ''::text) WHERE NOT pg_catalog.pg_try_advisory_xact_lock_shared(1296124237::bigint)
)`;

const FALL_ASLEEP = 'SELECT pg_catalog.pg_advisory_lock(1296124237::bigint)';
const AWAKE = 'SELECT pg_catalog.pg_advisory_unlock(1296124237::bigint)';
const NOTIFY_MYSELF = "SELECT pg_catalog.pg_notify('mailroom'::text, $1::text)";

/** A connection that does not receive its own notification by then cannot be used: it is probably one of a pooler. */
const PROOF_MS = 5_000;

/** Dependencies of {@link wakeListener}. */
export interface WakeDeps {
  /** Creates the connection. */
  readonly listen: () => PgListener;
  /** Ends the relay's pause. */
  readonly wake: () => void;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly telemetry: Telemetry;
}

/** Creates the listener of a relay. It never throws: while its connection fails, the relay polls. */
export function wakeListener({ listen, wake, clock, random, telemetry }: WakeDeps): WakeListener {
  let session: PgListener | undefined;
  let state: 'awake' | 'falling' | 'asleep' = 'awake';
  let isChecking = false;
  let failures = 0;
  let retryAt = Number.NEGATIVE_INFINITY;

  const lose = (lost: PgListener, error: unknown) => {
    if (session !== lost) return;
    session = undefined;
    state = 'awake';
    isChecking = false;
    failures += 1;
    retryAt = clock.now() + backoffMs(failures, 1_000, MINUTE_MS, random);
    telemetry.log.warn('The relay does not receive notifications, and polls', {
      error: asMailroomError(error),
    });
    lost.end().catch(() => {});
    wake();
  };
  const awake = () => {
    if (state === 'asleep') void session?.query(AWAKE).catch(() => {});
    if (state === 'asleep') state = 'awake';
  };
  const open = async (): Promise<PgListener> => {
    const opened = listen();
    session = opened;
    opened.on('error', (error) => lose(opened, error));
    opened.on('end', () => lose(opened, new Error('The connection ended.')));
    await startListening(opened, clock, () => {
      awake();
      wake();
    });
    failures = 0;
    return opened;
  };
  const fallAsleep = async () => {
    state = 'falling';
    let used = session;
    try {
      used ??= await open();
    } catch (error) {
      if (session !== undefined) lose(session, error);
      return;
    }
    try {
      await used.query(FALL_ASLEEP);
      if (session === used) state = 'asleep';
      wake();
    } catch {
      // A producer or another sleeping relay has held the lock for longer than the login's lock_timeout.
      if (session === used) state = 'awake';
      retryAt = clock.now() + 1_000;
    }
  };

  return {
    isAsleep: () => state === 'asleep',
    fallAsleep: () => {
      if (state === 'awake' && clock.now() >= retryAt) void fallAsleep();
    },
    awake,
    check: () => {
      const checked = session;
      if (checked === undefined) return;
      if (isChecking) return lose(checked, new Error('The connection did not answer.'));
      isChecking = true;
      checked.query('SELECT 1').then(
        () => {
          isChecking = false;
        },
        (error: unknown) => lose(checked, error),
      );
    },
    close: async () => {
      const closed = session;
      session = undefined;
      state = 'awake';
      await closed?.end().catch(() => {});
    },
  };
}

/** Connects, listens, and proves it by a notification to itself. @throws if it fails */
async function startListening(opened: PgListener, clock: Clock, heard: () => void): Promise<void> {
  const proof = randomUUID();
  const proven = new Promise<true>((resolve) => {
    opened.on('notification', ({ payload }) => (payload === proof ? resolve(true) : heard()));
  });
  await opened.connect();
  await opened.query('LISTEN mailroom');
  await opened.query(NOTIFY_MYSELF, [proof]);
  if (!(await withDeadline(clock, PROOF_MS, proven, () => false)))
    throw new Error('It is not a connection to the database itself, or does not receive notifications.');
}
