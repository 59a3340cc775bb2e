import { type Clock, systemClock } from '../../base/clock.ts';
import type { HeartbeatConfig } from '../../base/config.ts';
import { isObject } from '../../base/json.ts';
import { HEARTBEAT } from '../../events/heartbeat-event.ts';
import { type InvocationContext, powertoolsTelemetry, type Telemetry } from '../../observe/telemetry.ts';
import { createOutbox } from '../../store/dynamo/outbox.ts';
import { eventIdTime, type RandomBytes } from '../../store/event-id.ts';
import { HEARTBEAT_STATE_KEY } from '../../store/keys.ts';
import { SCHEMA } from '../../store/row-schema.ts';
import type { Table } from '../../store/table.ts';
import type { ConsumerEntry, Directory } from '../directory.ts';
import { dynamoInboxRow } from '../inbox-rows.ts';
import { readHeartbeat, readLastHeartbeats } from './heartbeat-reading.ts';

/** The number of intervals after which a heartbeat is too old to be judged. */
const RECENT_HEARTBEATS = 3;

/** Dependencies of the scheduled heartbeat. */
export interface HeartbeatHandlerDeps {
  readonly config: HeartbeatConfig;
  readonly table: Table;
  /** Read on each run, so that newly deployed consumers are included. */
  readonly directory: () => Promise<Directory>;
  /** @default the machine's clock */
  readonly clock?: Clock | undefined;
  /** @default the machine's random source */
  readonly random?: RandomBytes | undefined;
  /** @default Powertools */
  readonly telemetry?: Telemetry | undefined;
}

/** The response of a run. */
export interface HeartbeatReport {
  /** The event id of the new heartbeat; `null` if the last one is too young for another. */
  readonly sent: string | null;
  /** The consumers that have not acknowledged the heartbeat before it. */
  readonly late: readonly string[];
  /** The consumers that have, and the longest time that one took, milliseconds. */
  readonly acknowledged: number;
  readonly slowestMs: number;
}

/**
 * Creates the handler of the scheduled heartbeat. Each run commits one event, and emits the number of consumers that have not
 * acknowledged the event of the run before, including zero. A run that cannot commit emits nothing and throws, so a heartbeat that
 * does not pass always shows in the metric: as a late consumer, or as a missing value.
 *
 * EventBridge may start a run twice: a run less than half an interval after the last heartbeat does nothing.
 *
 * @example
 * ```ts
 * export const handler = createHeartbeatHandler({ config, table, directory: () => readDirectory(ssm, config.tableName) });
 * ```
 */
export function createHeartbeatHandler(
  deps: HeartbeatHandlerDeps,
): (event?: unknown, context?: InvocationContext) => Promise<HeartbeatReport> {
  const { config, table, clock = systemClock, random } = deps;
  const telemetry =
    deps.telemetry ?? powertoolsTelemetry({ service: 'mailroom-heartbeat', tableName: config.tableName });
  // `EventsCommitted` of one more service would be one more custom metric, which costs more than the events.
  const outbox = createOutbox({ config, table, clock, random, telemetry: { ...telemetry, count: () => {} } });

  async function send({ consumers }: Directory, previous: string | undefined): Promise<string | null> {
    const [sent] = await outbox.commit({
      events: [HEARTBEAT.create({ aggregateId: table.name, data: payloadFor(consumers) })],
    });
    const latest = sent?.eventId ?? null;
    // Last: a heartbeat that is not recorded is judged by no run, and the one before it is judged again.
    const state = { latest, ...(previous === undefined ? {} : { previous }) };
    await table.write({ Put: { Item: { ...HEARTBEAT_STATE_KEY, schema: SCHEMA, ...state } } });
    return latest;
  }

  return async (_event, context) => {
    if (context) telemetry.startInvocation?.(context);
    const { latest } = await readLastHeartbeats(table);
    const ageMs = latest === undefined ? Number.POSITIVE_INFINITY : clock.now() - eventIdTime(latest);
    // A heartbeat of the future comes from a wrong clock, and delays none.
    if (Math.abs(ageMs) < config.everyMs / 2) {
      telemetry.log.info('The last heartbeat is too young for another one', { eventId: latest, ageMs });
      return { sent: null, late: [], acknowledged: 0, slowestMs: 0 };
    }
    // After a long pause, TTL may have deleted the rows of consumers that acknowledged the last one.
    const isRecent = latest !== undefined && ageMs < RECENT_HEARTBEATS * config.everyMs;
    const directory = await deps.directory();
    const last = isRecent ? await readHeartbeat(dynamoInboxRow(table), directory, latest) : undefined;
    const sent = await send(directory, latest);
    const { waiting: late = [], acknowledged = [] } = last ?? {};
    telemetry.gauge('HeartbeatsLate', late.length);
    if (late.length > 0) {
      telemetry.log.warn('Consumers have not acknowledged the last heartbeat: run mailroom status', {
        consumers: late,
        eventId: latest,
        ageMs,
      });
    }
    const report = {
      sent,
      late,
      acknowledged: acknowledged.length,
      slowestMs: Math.max(0, ...acknowledged.map(({ afterMs }) => afterMs)),
    };
    telemetry.log.info('Sent a heartbeat', report);
    telemetry.flush();
    return report;
  };
}

/**
 * The payload of a heartbeat: a text at each path by which a consumer's rule groups messages. AWS does not document whether
 * EventBridge delivers an event that lacks it.
 */
function payloadFor(consumers: readonly ConsumerEntry[]): object {
  return consumers
    .flatMap(({ fairBy = '' }) => (fairBy.startsWith(DATA_PATH) ? [fairBy.slice(DATA_PATH.length)] : []))
    .reduce((payload, path) => withTextAt(payload, path.split('.')), {});
}

/** The beginning of a path in the payload. */
const DATA_PATH = '$.detail.data.';

function withTextAt(payload: object, [name = '', ...rest]: readonly string[]): object {
  const inner: unknown = new Map<string, unknown>(Object.entries(payload)).get(name);
  return {
    ...payload,
    [name]: rest.length === 0 ? 'mailroom' : withTextAt(isObject(inner) ? inner : {}, rest),
  };
}
