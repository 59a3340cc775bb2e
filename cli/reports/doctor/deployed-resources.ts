import type { Directory } from '../../../lambdas/runtime/operations/directory.ts';
import type { Wiring } from '../../deployment/aws-wiring.ts';
import type { Pauses } from '../status/wiring.ts';
import type { RoleSimulator } from './role-needs.ts';

/** The resources port: the settings of the deployed resources. It only reads. */
export interface DeployedResources {
  table(): Promise<DeployedTable>;
  /** The attribute by which DynamoDB expires rows; `undefined` if TTL is off. */
  expiryAttribute(): Promise<string | undefined>;
  /** The policy of the table, as JSON; `undefined` if it has none. */
  tablePolicy(): Promise<string | undefined>;
  /** Point-in-time recovery of the table is on. */
  hasRecovery(): Promise<boolean>;
  /** @returns `undefined` if the queue does not exist */
  queue(url: string): Promise<DeployedQueue | undefined>;
  /** The targets of a rule; none if the rule does not exist. */
  targets(bus: string, rule: string): Promise<readonly DeployedTarget[]>;
  /** @param name - with an alias: `name:alias`. @returns `undefined` if the function does not exist */
  function(name: string): Promise<DeployedFunction | undefined>;
  concurrency(): Promise<AccountConcurrency>;
  /** The most unreserved concurrency that the account used in the last hour; `undefined` without a metric. */
  concurrencyPeak(): Promise<number | undefined>;
  /** All alarms of the account and region. */
  alarms(): Promise<readonly DeployedAlarm[]>;
}

/** A table. */
export interface DeployedTable {
  readonly arn: string;
  readonly isProtected: boolean;
  /** The images in its stream, e.g. `NEW_IMAGE`; `undefined` without a stream. */
  readonly streamView: string | undefined;
  readonly streamArn: string | undefined;
}

/** A queue. */
export interface DeployedQueue {
  readonly arn: string;
  readonly visibilityS: number;
  readonly retentionS: number;
  readonly messageBytesMax: number;
  /** The delay of every new message. */
  readonly delayS: number;
  /** Its policy as JSON; `undefined` if it has none. */
  readonly policy: string | undefined;
  /** Its redrive policy as JSON; `undefined` if it has none. */
  readonly redrive: string | undefined;
}

/** A target of a rule. */
export interface DeployedTarget {
  readonly id: string;
  readonly arn: string;
  /** The ARN of the queue that receives events that the target did not accept. */
  readonly deadLetterQueue: string | undefined;
}

/** A function. */
export interface DeployedFunction {
  readonly timeoutS: number;
  /** The ARN of its role. */
  readonly role: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Lambda's reason why it cannot run; `undefined` if it can. */
  readonly failure: string | undefined;
}

/** Concurrent executions of the account's functions in the region. */
export interface AccountConcurrency {
  readonly limit: number;
  /** The part of the limit that functions without a reservation share. */
  readonly unreserved: number;
}

/** An alarm. */
export interface DeployedAlarm {
  readonly name: string;
  readonly arn: string;
  readonly description: string;
  readonly isFiring: boolean;
  readonly actionsEnabled: boolean;
  /** The ARNs of its actions when it fires. */
  readonly actions: readonly string[];
  /** The rule of a composite alarm. */
  readonly rule: string | undefined;
}

/** Dependencies of the checks of `mailroom doctor`. */
export interface DoctorDeps {
  readonly directory: Directory;
  readonly wiring: Wiring;
  readonly resources: DeployedResources;
  readonly pauses: Pauses;
  /** AWS's time, epoch milliseconds. */
  readonly now: number;
  /** When the sweep's last complete pass began; before the first, when the table was created. Epoch milliseconds. */
  readonly sweptAt: () => Promise<number>;
  /** The version of the sweep's state row; `undefined` before the first pass. */
  readonly rowSchema: () => Promise<number | undefined>;
  /** The least by which this machine's clock is ahead of AWS's, milliseconds; negative if it is behind. */
  readonly machineAheadMs: number;
  /** `local`: the endpoint is a local engine, which checks no policies. `no-client`: the package of the client is missing. */
  readonly roles: RoleSimulator | 'local' | 'no-client';
}
