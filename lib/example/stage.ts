import { Duration, type Environment, RemovalPolicy, type StackProps } from 'aws-cdk-lib';
import { FunctionUrlAuthType } from 'aws-cdk-lib/aws-lambda';
import { MailroomError } from '../../lambdas/runtime/errors.ts';
import type { RetryOptions } from '../inbox-consumer-props.ts';

/** The settings in which the stages of the order system differ. */
export interface Stage {
  readonly name: StageName;
  readonly env: Environment;
  /** What becomes of tables, bus, queues and logs with their stack. Absent: they are kept, and the stacks are protected. */
  readonly removalPolicy?: RemovalPolicy;
  /** Who may call the orders API. */
  readonly ordersAuth: FunctionUrlAuthType;
  /** How often the youngest minutes are swept. */
  readonly sweepEvery: Duration;
  /** For how long the bus can replay an event. Absent: not at all; MiniStack has no archives. */
  readonly archive?: Duration;
  /** The most invocations of one consumer at a time. Absent: as many as Lambda allows. */
  readonly maxConcurrency?: number;
  /** The retry schedule of every consumer. Absent: the library's. */
  readonly retry?: RetryOptions;
  /** The longest outage that a message survives. Absent: the library's. */
  readonly outageTolerance?: Duration;
  /** Whether the data is under a key of our own, and X-Ray records the functions. */
  readonly audited: boolean;
  /** Whether there are composite alarms: MiniStack has none, and no metric math. */
  readonly compositeAlarms: boolean;
}

/** The stages that there are. */
export type StageName = 'local' | 'dev' | 'prod';

type EnvironmentVariables = Readonly<Record<string, string | undefined>>;

/**
 * The account and region of a local AWS. Fixed, so that the local stage, whose API asks nobody who they are, cannot be
 * deployed to a real account: the CDK refuses credentials of another one.
 */
const LOCAL_ENV: Environment = { account: '000000000000', region: 'us-east-1' };

/**
 * The stage to synthesize: `-c stage=…` says so, else a local AWS endpoint means `local`, else it is `dev`.
 *
 * @param name - the context value `stage`; absent when not given
 * @param env - the environment of the process
 * @throws `BAD_STAGE` when there is no such stage
 *
 * @example
 * ```ts
 * const stage = readStage(app.node.tryGetContext('stage'), process.env);
 * ```
 */
export function readStage(name: string | undefined, env: EnvironmentVariables): Stage {
  const chosen = name ?? (env.AWS_ENDPOINT_URL ? 'local' : 'dev');
  const { CDK_DEFAULT_ACCOUNT: account, CDK_DEFAULT_REGION: region } = env;
  switch (chosen) {
    case 'local':
      return {
        name: chosen,
        env: LOCAL_ENV,
        removalPolicy: RemovalPolicy.DESTROY,
        ordersAuth: FunctionUrlAuthType.NONE,
        sweepEvery: Duration.seconds(5),
        // On a laptop each invocation that runs at the same time is a process of its own.
        maxConcurrency: 2,
        // On a laptop, nobody waits half an hour for a message to be rejected, nor for the receives of a long outage.
        retry: { attempts: 5, longest: Duration.seconds(8) },
        outageTolerance: Duration.minutes(5),
        audited: false,
        compositeAlarms: false,
      };
    case 'dev':
    case 'prod':
      return {
        name: chosen,
        env: { account, region },
        ordersAuth: FunctionUrlAuthType.AWS_IAM,
        sweepEvery: Duration.minutes(1),
        archive: Duration.days(30),
        audited: chosen === 'prod',
        compositeAlarms: true,
      };
    default:
      throw new MailroomError(
        'BAD_STAGE',
        `The stage is "${chosen}"; there are local, dev and prod. Choose one with -c stage=dev.`,
      );
  }
}

/**
 * What every stack of a stage has in common: where it is, its name, and whether it can be deleted just so.
 *
 * @param service - absent for what all services share
 */
export function stackProps(stage: Stage, service?: string): StackProps {
  return {
    env: stage.env,
    stackName: ['mailroom', stage.name, ...(service === undefined ? [] : [service])].join('-'),
    terminationProtection: stage.removalPolicy !== RemovalPolicy.DESTROY,
  };
}
