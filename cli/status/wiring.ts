import type { DeployedRules, Drift } from '../../lambdas/runtime/operations/audit/audit-drift.ts';
import type { ConsumerEntry, Directory } from '../../lambdas/runtime/operations/directory.ts';
import type { Operation } from '../reading/operations.ts';
import type { CheckedParts, PartProblem } from './part-checks.ts';

/** The wiring port: the deployed resources that move events from one part to the next. */
export interface Wiring {
  /** The event source mappings of a function, or of an alias (`name:alias`); none if it does not exist. */
  mappings(functionName: string): Promise<readonly Mapping[]>;
  /** The reserved concurrency of a function; `null` if none is reserved, `undefined` if the function does not exist. */
  reservedConcurrency(functionName: string): Promise<number | null | undefined>;
  hasBus(name: string): Promise<boolean>;
  readonly rules: DeployedRules;
  /** The ARN of the table's stream; `undefined` if it is off. */
  stream(): Promise<string | undefined>;
}

/** An event source mapping. */
export interface Mapping {
  readonly uuid: string;
  /** The ARN of the queue or stream that it reads. */
  readonly source: string;
  readonly enabled: boolean;
  /** Lambda is not about to change its state. */
  readonly isSettled: boolean;
  /** Lambda keeps the messages or records that the function reports as failed (`ReportBatchItemFailures`). */
  readonly reportsItemFailures: boolean;
  /** Lambda halves a batch of a stream before it retries it. */
  readonly bisects: boolean;
  /** The ARN of the queue that receives discarded records of a stream. */
  readonly failureDestination: string | undefined;
  /** The most retries of a batch of a stream; `undefined` or -1 for no limit. */
  readonly retriesMax: number | undefined;
  /** The most concurrent invocations for a queue; `undefined` for no limit. */
  readonly concurrencyMax: number | undefined;
}

/** The pause of a consumer: its latest record in the operations log. */
export interface Pause extends Pick<Operation, 'at' | 'by' | 'reason'> {
  /** When SQS begins to delete messages that were sent after the pause, epoch milliseconds; absent without the queue. */
  readonly expiresFrom?: number;
}

/** Reads the pause of a consumer whose mapping is disabled; `undefined` if the log has none, or a later resume. */
export type Pauses = (consumer: Pick<ConsumerEntry, 'name' | 'queue'>) => Promise<Pause | undefined>;

/** A part that events pass, and what stops them there. */
export type WiringProblem = PartProblem<
  | 'mapping-disabled'
  | 'paused'
  | 'no-mapping'
  | 'concurrency-zero'
  | 'no-function'
  | 'no-bus'
  | 'stream-off'
  | Exclude<Drift['problem'], 'no-queue'>
>;

/** The result of {@link readWiring}. */
export type WiringReport = CheckedParts<WiringProblem['problem']>;

/** Dependencies of {@link readWiring}. */
export interface WiringDeps {
  readonly directory: Directory;
  readonly wiring: Wiring;
  /** The ARN of a queue; `undefined` if the queue does not exist. */
  readonly queueArn: (url: string) => string | undefined;
  readonly pauses: Pauses;
}
