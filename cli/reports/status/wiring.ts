import type { Drift } from '../../../lambdas/runtime/operations/audit/audit-drift.ts';
import type { ConsumerEntry, Directory } from '../../../lambdas/runtime/operations/directory.ts';
import type { Wiring } from '../../deployment/aws-wiring.ts';
import type { Operation } from '../../deployment/operations.ts';
import type { CheckedParts, PartProblem } from './part-checks.ts';

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
  | 'mapping-filter'
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
