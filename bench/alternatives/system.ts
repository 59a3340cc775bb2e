import type { MeteredAws } from '../aws/metered-aws.ts';
import type { TableShape } from '../aws/metered-table.ts';

/** The input of a measured system. */
export interface Workload {
  /** The number of events; the handler writes one domain row of under 1 KB with each. */
  readonly events: number;
  /** The size of each event's payload (`data`) as JSON, in bytes. */
  readonly payloadBytes: number;
  readonly consumers: number;
  /** The number of events that fail once at the bus, and that fail once in each consumer's handler. */
  readonly retries: number;
  /**
   * The number of records or rows that a relay processes at once. A consumer receives at most 10 messages, the limit of one SQS
   * receive.
   */
  readonly batchSize: number;
}

/** A system that carries an event from a handler to consumers, each of which writes one domain row of under 1 KB for it. */
export interface System {
  /** E.g. `mailroom`. */
  readonly name: string;
  /** The guarantees for an event. */
  readonly promise: {
    /** Delivery of committed events. None of the systems publishes an event that was not committed. */
    readonly publishes: 'at least once' | 'may lose';
    /** Application of a consumer's DynamoDB effect. */
    readonly effects: 'exactly once' | 'may double';
  };
  readonly tables: readonly TableShape[];
  /**
   * Carries all events of a workload from the write to the last consumer, and ends when no work is left. Records its requests
   * under `write`, `relay` and `consume`, and under `standing` those that it would also make without events.
   */
  run(aws: MeteredAws, workload: Workload): Promise<void>;
  /**
   * Makes the requests of one minute in steady state that do not depend on events, such as scans and empty polls, recorded as
   * `standing`. Absent if there are none.
   *
   * @param aws - fresh tables, which it fills to their steady state
   * @returns the factor from the recorded requests to one minute: for a table too large for memory, a sample is read
   */
  standing?(aws: MeteredAws, load: SteadyLoad): Promise<number>;
}

/** A steady state. */
export interface SteadyLoad {
  readonly eventsPerSecond: number;
  readonly payloadBytes: number;
}
