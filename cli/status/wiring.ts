import type { DeployedRules, Drift } from '../../lambdas/runtime/operations/audit/audit-drift.ts';
import type { Directory } from '../../lambdas/runtime/operations/directory.ts';

/** The wiring port: the deployed resources that move events from one part to the next. */
export interface Wiring {
  /** The event source mappings of a function; none if the function does not exist. */
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
}

/** A part that events pass, and what stops them there. */
export interface WiringProblem {
  /** `stream relay`, `sweep`, `heartbeat`, `bus`, `table`, or the name of a consumer. */
  readonly part: string;
  readonly problem:
    | 'mapping-disabled'
    | 'no-mapping'
    | 'concurrency-zero'
    | 'no-function'
    | 'no-bus'
    | 'stream-off'
    | Exclude<Drift['problem'], 'no-queue'>;
  /** The problem as a sentence, for people. */
  readonly text: string;
  /** The words of the command that repairs it, without region, profile and endpoint. */
  readonly fix: readonly string[];
}

/** The result of {@link readWiring}. */
export interface WiringReport {
  readonly problems: readonly WiringProblem[];
  /** The checks that were not made because the caller may not read what they need. */
  readonly notChecked: readonly {
    /** The actions that the caller's policies lack. */
    readonly needs: readonly string[];
    /** The parts that were not checked, as in {@link WiringProblem}. */
    readonly parts: readonly string[];
  }[];
}

/** Dependencies of {@link readWiring}. */
export interface WiringDeps {
  readonly directory: Directory;
  readonly wiring: Wiring;
  /** The ARN of a queue; `undefined` if the queue does not exist. */
  readonly queueArn: (url: string) => string | undefined;
}
