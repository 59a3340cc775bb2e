import type { MeteredAws } from '../aws/metered-aws.ts';
import type { TableShape } from '../aws/metered-table.ts';

/** What a system is given to do. */
export interface Workload {
  /** How many events, each beside one domain row of under 1 KB that its handler writes. */
  readonly events: number;
  /** The size of each event's payload (`data`) as JSON, bytes. */
  readonly payloadBytes: number;
  readonly consumers: number;
  /** How many of the events fail once at the bus, and how many fail once in each consumer's handler. */
  readonly retries: number;
  /** How many records, or rows, a relay works on at once. A consumer is handed at most 10 messages: what one SQS receive returns. */
  readonly batchSize: number;
}

/** A way to get an event from a handler to consumers that each write one domain row of under 1 KB for it. */
export interface System {
  /** E.g. `mailroom`. */
  readonly name: string;
  /** What may happen to an event, in a few words. */
  readonly promise: {
    /** Whether a committed event can be lost. None of them publishes one that was not committed. */
    readonly publishes: 'at least once' | 'may lose';
    /** Whether a consumer's DynamoDB effect can be applied twice. */
    readonly effects: 'exactly once' | 'may double';
  };
  readonly tables: readonly TableShape[];
  /**
   * Carries all events of a workload from the write to the end of every consumer, and ends when nothing is left to do. It books
   * under `write`, `relay` and `consume`, and under `standing` what it would do without events as well.
   */
  run(aws: MeteredAws, workload: Workload): Promise<void>;
  /**
   * Does what it does in a minute of steady state whether or not there are events, such as scans and polls that find
   * nothing, booked as `standing`. Absent where there is no such thing.
   *
   * @param aws - fresh tables, which it fills as they are in steady state
   * @returns how many times what was booked is one minute: of a table that is too large for memory a sample is read
   */
  standing?(aws: MeteredAws, load: SteadyLoad): Promise<number>;
}

/** A steady state. */
export interface SteadyLoad {
  readonly eventsPerSecond: number;
  readonly payloadBytes: number;
}
