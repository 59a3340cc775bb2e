import pMap from 'p-map';
import type { TableShape } from '../aws/metered-table.ts';
import type { Usage } from '../cost/measure.ts';

/** The task of a fresh process: carry events from a service's write to the bus. */
export interface PeerTask {
  readonly payloadBytes: number;
  /** The events of an unmeasured first round. */
  readonly warmUp: number;
  /** The measured events. */
  readonly events: number;
  /** The most events that are written before they are relayed. */
  readonly roundMax: number;
  /** The peer's settings; absent for Mailroom. */
  readonly peer?: PeerSettings;
}

/** The peer's settings; an absent one keeps the peer's default. */
export interface PeerSettings {
  /** The folder in which it is installed. */
  readonly folder: string;
  /** The number of buses in the process, each with its own poller. */
  readonly workers: number;
  readonly outbox: { readonly batchSize?: number; readonly pollIntervalMs?: number };
  readonly publisher: { readonly bufferSize?: number };
}

/** The figures of one system; units and calls are averages per event. */
export interface PeerFigures extends Pick<Usage, 'writeUnits' | 'readUnits' | 'dynamodbCalls' | 'busCalls'> {
  readonly eventsPerSecond: number;
  readonly cpuMsPerEvent: number;
  /** Measured events that the bus accepted more than once. */
  readonly duplicates: number;
  /** Of {@link REFUSED} entries that the bus refused, those that it never received again. */
  readonly lost: number;
}

/** A measured system. */
export interface Carrier {
  /** Commits an order and its event in one transaction. */
  write(index: number, payloadBytes: number): Promise<void>;
  /** Publishes as many events, all that are written, and ends when their rows show it. */
  relay(events: number): Promise<void>;
}

/** The table of the peer's outbox, as its README describes it; the index holds whole rows, because its relay reads them there. */
export const PEER_TABLE: TableShape = {
  name: 'outbox-event-bus',
  keys: ['id'],
  indexes: [{ name: 'status-gsiSortKey-index', keys: ['status', 'gsiSortKey'] }],
};

/** The number of entries that the bus refuses after the measured events, each once. */
export const REFUSED = 5;

/** The number of concurrent writes; writing is not timed. */
const WRITERS = 16;

/** Sends a control request to the tables' process: see `tables.child.ts`. */
export async function control<T>(name: string, input: object): Promise<T> {
  const response = await fetch(String(process.env.AWS_ENDPOINT_URL), {
    method: 'POST',
    headers: { 'x-amz-target': `Bench.${name}` },
    body: JSON.stringify(input),
  });
  return (await response.json()) as T;
}

/**
 * Carries the events of a task.
 *
 * @throws Error if the bus accepted fewer events than were written, although it refused none
 */
export async function measureCarrier(carrier: Carrier, task: PeerTask): Promise<PeerFigures> {
  const { payloadBytes, warmUp, events, roundMax } = task;
  let written = 0;
  const carry = async (step: string, count: number): Promise<{ ms: number; cpuMs: number }> => {
    await control('Step', { step });
    const spent = { ms: 0, cpuMs: 0 };
    for (let left = count; left > 0; left -= roundMax) {
      const indexes = Array.from({ length: Math.min(left, roundMax) }, (_, n) => written + n);
      written += indexes.length;
      await pMap(indexes, (index) => carrier.write(index, payloadBytes), { concurrency: WRITERS });
      const [before, startedAt] = [process.cpuUsage(), performance.now()];
      await carrier.relay(indexes.length);
      spent.ms += performance.now() - startedAt;
      const { user, system } = process.cpuUsage(before);
      spent.cpuMs += (user + system) / 1_000;
    }
    return spent;
  };
  const used = (step: string, count: number) =>
    control<Usage & { published: number }>('Usage', { step, events: count });

  await carry('warm-up', warmUp);
  await used('warm-up', warmUp);
  const { ms, cpuMs } = await carry('measured', events);
  const { writeUnits, readUnits, dynamodbCalls, busCalls, published } = await used('measured', events);
  if (published < events) throw new Error(`Only ${published} of ${events} events were published`);
  await control('Refuse', { entries: REFUSED });
  await carry('refused', REFUSED);
  const { published: after } = await used('refused', REFUSED);
  return {
    ...{ writeUnits, readUnits, dynamodbCalls, busCalls },
    eventsPerSecond: (events / ms) * 1_000,
    cpuMsPerEvent: cpuMs / events,
    duplicates: published - events,
    lost: Math.max(0, REFUSED - after),
  };
}
