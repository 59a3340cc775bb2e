import { CLOCK_SKEW_MS, type Clock, systemClock } from '../base/clock.ts';
import { asMailroomError, MailroomError } from '../base/errors.ts';
import { MINUTE_MS } from '../base/units.ts';
import type { Bus } from '../bus/event-bus.ts';
import { tracedBus } from '../observe/message-spans.ts';
import { type InvocationContext, powertoolsTelemetry, type Telemetry } from '../observe/telemetry.ts';
import { flushSpans } from '../observe/tracer.ts';
import { backoffMs } from '../store/backoff.ts';
import { type RandomBytes, systemRandomBytes } from '../store/event-id.ts';
import type { DatabaseRelayConfig } from './database-config.ts';
import type { ClaimedEvent, DatabaseTransitions } from './database-transitions.ts';
import { declaredSources } from './declared-sources.ts';
import { GROUP_ROWS } from './publish-events.ts';
import { type GroupContext, publishGroup } from './publish-group.ts';
import { CONCURRENCY, publishLimits, startPass } from './relay-context.ts';

/** Publishes the events of a database; created by {@link createPostgresRelay} or {@link createMysqlRelay}. Any number may run at a time. */
export interface DatabaseRelay {
  /**
   * Runs until {@link DatabaseRelay.stop}, or for a time. It never throws: what fails is logged, and tried again.
   *
   * @param until - the time after which it claims and publishes nothing, epoch milliseconds @default no end
   */
  run(until?: number): Promise<void>;
  /** Publishes the events that are due now. @param until - as of {@link DatabaseRelay.run} */
  pass(until?: number): Promise<DatabasePass>;
  /** Ends {@link DatabaseRelay.run} after the calls that it has begun, and returns when it has ended. */
  stop(): Promise<void>;
  /** Ends the pause between two passes, for example on a notification. It is never needed. */
  wake(): void;
}

/** The results of one pass. */
export interface DatabasePass {
  /** The number of events that it claimed. */
  readonly claimed: number;
  /** The number of those that the bus accepted. */
  readonly published: number;
  /** True if the database failed, or the bus accepted nothing for a while. */
  readonly failed: boolean;
}

/** Dependencies of the relay of any database. */
export interface DatabaseRelayDeps {
  /** From `readPostgresRelayConfig(process.env)` or `readMysqlRelayConfig(process.env)`. */
  readonly config: DatabaseRelayConfig;
  /** The bus on which events are published. */
  readonly bus: Bus;
  /** @default the machine's clock */
  readonly clock?: Clock | undefined;
  /** @default the machine's random source */
  readonly random?: RandomBytes | undefined;
  /** @default `powertoolsTelemetry` */
  readonly telemetry?: Telemetry | undefined;
  /** The maximum number of concurrent calls to the bus. @default 16 */
  readonly concurrency?: number | undefined;
}

/** The given or default parts of a relay, with which its database makes transitions. */
export interface DatabaseRelayParts {
  readonly config: DatabaseRelayConfig;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly telemetry: Telemetry;
}

/** The connection on which a relay listens while it sleeps. */
export interface WakeListener {
  /** True if every commit of an event wakes the relay. */
  isAsleep(): boolean;
  /** Begins to fall asleep; the relay is woken for its last look at the queue when it has. */
  fallAsleep(): void;
  /** Makes commits stop waking the relay. */
  awake(): void;
  /** Replaces a connection that has not answered the last call of this. */
  check(): void;
  close(): Promise<void>;
}

/** The part of a relay that differs from one database to another. */
export interface DatabaseQueue {
  readonly transitions: DatabaseTransitions;
  /** Emits gauges, and deletes rows whose retention is over. It never throws. */
  readonly care: () => Promise<void>;
  /** Creates a listener. @param wake - ends the pause between two passes @default the relay polls */
  readonly listener?: ((wake: () => void) => WakeListener) | undefined;
  /** Returns the time until the next scheduled, released or leased event is due, milliseconds. Only a relay that sleeps calls it. @default it never sleeps */
  readonly nextDueMs?: (() => Promise<number>) | undefined;
}

/** Groups that are claimed and published at a time, so that the bus is busy while one of them is marked. */
const GROUPS_AT_ONCE = 3;

/** The longest pause of a relay that sleeps, milliseconds, for what no notification announces. */
const SLEEP_MS = 5_000;

/** A relay that has published nothing for this time falls asleep, milliseconds. */
const QUIET_MS = 2_000;

/** The longest pause while the database fails, milliseconds. */
const FAILURE_PAUSE_MAX_MS = 10_000;

/** The time for the marks and releases after the last publish of an invocation, milliseconds. */
const END_MS = 8_000;

/** Makes the given or default parts of a relay. @throws `BAD_CONFIG` if the lease is not longer than a publish */
export function relayParts(deps: DatabaseRelayDeps): DatabaseRelayParts {
  const { config, clock = systemClock, random = systemRandomBytes } = deps;
  refuseShortLease(config);
  const telemetry =
    deps.telemetry ?? powertoolsTelemetry({ service: 'mailroom-relay', tableName: config.tableName });
  return { config, clock, random, telemetry };
}

/**
 * Creates a relay of a database. It holds no lock and no transaction while it publishes: a claim is a lease.
 *
 *     claim                  publish            mark                    the lease ends
 *       |----------------------|------------------|------------------------|
 *       due_at = now + lease   PutEvents          pending -> published     another relay may claim
 *
 * After a crash between publish and mark, the event is published again under the same id, and the inbox absorbs it.
 */
export function databaseRelay(
  given: Pick<DatabaseRelayDeps, 'bus' | 'concurrency'>,
  parts: DatabaseRelayParts,
  deps: DatabaseQueue,
): DatabaseRelay {
  const { config, clock, random, telemetry } = parts;
  const context: GroupContext = {
    ...parts,
    ...publishLimits(given.concurrency ?? CONCURRENCY),
    bus: tracedBus(given.bus, config.busName),
    transitions: deps.transitions,
    declared: declaredSources(config, telemetry),
  };
  let stopped = false;
  let pause = new AbortController();
  let running: Promise<void> = Promise.resolve();

  const pass = (until = Number.POSITIVE_INFINITY, fully = false) =>
    publishDue(context, () => !stopped && clock.now() < until, fully);

  async function loop(until: number): Promise<void> {
    const listener = deps.listener?.(() => pause.abort());
    let careAt = clock.now();
    let busyAt = careAt;
    let failures = 0;
    while (!stopped && clock.now() < until) {
      if (clock.now() >= careAt) {
        await deps.care();
        careAt = clock.now() + MINUTE_MS;
        telemetry.flush();
      }
      // Read before the pass: only a pass that began asleep sees every event that was committed without a notification.
      const isAsleep = listener?.isAsleep() ?? false;
      const { claimed, failed } = await pass(Math.min(until, careAt), isAsleep);
      failures = failed ? failures + 1 : 0;
      if (claimed > 0 || failed) {
        busyAt = clock.now();
        listener?.awake();
      }
      if (claimed > 0 && !failed) continue;
      const longest = Math.max(config.pollMs, FAILURE_PAUSE_MAX_MS);
      let ms = failed ? backoffMs(failures, config.pollMs, longest, random) : config.pollMs;
      if (isAsleep && !failed) {
        listener?.check();
        ms = Math.min(SLEEP_MS, await (deps.nextDueMs?.() ?? Promise.reject()).catch(() => config.pollMs));
      } else if (clock.now() - busyAt >= QUIET_MS) listener?.fallAsleep();
      await clock.sleep(Math.min(ms, until - clock.now(), careAt - clock.now()), pause.signal);
      if (!stopped) pause = new AbortController();
    }
    await listener?.close();
    telemetry.flush();
  }

  return {
    pass: (until) => pass(until),
    run: (until = Number.POSITIVE_INFINITY) => {
      running = loop(until);
      return running;
    },
    stop: () => {
      stopped = true;
      pause.abort();
      return running;
    },
    wake: () => pause.abort(),
  };
}

/** Claims, publishes and marks what is due, in several groups at a time once there is more than one. */
async function publishDue(
  context: GroupContext,
  hasTime: () => boolean,
  fully: boolean,
): Promise<DatabasePass> {
  const { transitions, telemetry } = context;
  const breaker = startPass(context);
  const tally = { claimed: 0, published: 0, failed: false };
  const claim = async (first = false) => {
    if (!hasTime() || breaker.isStopped()) return [];
    try {
      const rows = await transitions.claim(GROUP_ROWS, first && fully);
      tally.claimed += rows.length;
      return rows;
    } catch (error) {
      tally.failed = true;
      telemetry.log.error('The relay could not claim events', { error: asMailroomError(error) });
      return [];
    }
  };
  const lane = async (rows: readonly ClaimedEvent[]) => {
    for (let group = rows; group.length > 0; group = group.length < GROUP_ROWS ? [] : await claim()) {
      // Not `+= await`, which would add to what the sum was before the call.
      const published = await publishGroup(context, group, breaker, hasTime);
      tally.published += published;
    }
  };
  const first = await claim(true);
  const others = first.length < GROUP_ROWS ? 0 : GROUPS_AT_ONCE - 1;
  await Promise.all([lane(first), ...Array.from({ length: others }, async () => lane(await claim()))]);
  return { ...tally, failed: tally.failed || breaker.isStopped() };
}

/**
 * Creates the handler of a Lambda function that a schedule invokes each minute: it runs a relay for a minute, or until shortly before its
 * timeout.
 */
export function databaseRelayHandler(
  relay: Pick<DatabaseRelay, 'run'>,
  { config, clock = systemClock }: Pick<DatabaseRelayDeps, 'config' | 'clock'>,
): (event: unknown, context: InvocationContext) => Promise<void> {
  return async (_event, lambda) => {
    const now = clock.now();
    const endsBy = now + lambda.getRemainingTimeInMillis();
    await relay.run(Math.min(now + MINUTE_MS, endsBy - config.publishTimeoutMs - END_MS));
    await flushSpans(clock, endsBy);
  };
}

function refuseShortLease({ claimLeaseMs, publishTimeoutMs }: DatabaseRelayConfig): void {
  const shortest = 2 * publishTimeoutMs + CLOCK_SKEW_MS;
  if (claimLeaseMs > shortest) return;
  throw new MailroomError(
    'BAD_CONFIG',
    `claimLeaseMs is ${claimLeaseMs}, but it must be more than ${shortest} with a publishTimeoutMs of ${publishTimeoutMs}: an event is published only while its lease outlasts the call. ` +
      'Raise MAILROOM_CLAIM_LEASE_MS.',
  );
}
