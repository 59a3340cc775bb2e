import {
  CfnOutput,
  Duration,
  type Environment,
  RemovalPolicy,
  type Stack,
  type StackProps,
} from 'aws-cdk-lib';
import { FunctionUrlAuthType } from 'aws-cdk-lib/aws-lambda';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import type { InboxConsumerProps } from '../consumer/inbox-consumer-props.ts';
import type { InboxConsumer } from '../inbox-consumer.ts';

/** The settings in which the stages of the order system differ. */
export interface Stage {
  /** Part of the stacks' names: a {@link StageName}, or a name that no other deployment has. */
  readonly name: string;
  readonly env: Environment;
  /**
   * The removal policy of tables, bus, queues and logs. Absent: they are kept, and the stacks have
   * termination protection.
   */
  readonly removalPolicy?: RemovalPolicy;
  /** The authorization of the orders API. */
  readonly ordersAuth: FunctionUrlAuthType;
  /** The interval at which the youngest minutes are swept. */
  readonly sweepEvery: Duration;
  /** The retention of the archive, for replays. Absent: no archive; MiniStack has none. */
  readonly archive?: Duration;
  /** Sends heartbeats. A local demo shows the events of orders only. */
  readonly heartbeat: boolean;
  /** Settings of every consumer. Those absent have the library's defaults. */
  readonly consumers?: Pick<InboxConsumerProps, 'lease' | 'queue' | 'retry'>;
  /** Encrypts the data with a customer managed key, and records the functions with X-Ray. */
  readonly audited: boolean;
  /** Creates composite alarms. MiniStack has neither these nor metric math. */
  readonly compositeAlarms: boolean;
}

/** The deployment stages. */
export type StageName = 'local' | 'dev' | 'prod';

type EnvironmentVariables = Readonly<Record<string, string | undefined>>;

/**
 * The account and region of a local AWS. They are fixed so that the local stage, whose API does not authenticate callers, cannot
 * be deployed to a real account: the CDK refuses credentials of another account.
 */
const LOCAL_ENV: Environment = { account: '000000000000', region: 'us-east-1' };

/**
 * Selects the stage to synthesize: `-c stage=…`, or `local` if a local AWS endpoint is set, otherwise `dev`.
 *
 * @param name - the context value `stage`; absent if not given
 * @param env - the environment of the process
 * @throws `BAD_STAGE` if the stage is unknown
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
        heartbeat: false,
        consumers: {
          // A duplicate waits for the rest of a lease; a demo's duplicates come back soon.
          lease: Duration.seconds(6),
          queue: {
            // A killed worker's message is redelivered as soon as its function would have been stopped.
            visibilityTimeout: Duration.seconds(30),
            // Each concurrent invocation is a separate process on a laptop.
            maxConcurrency: 2,
          },
          // Rejecting a message must not take half an hour on a laptop, nor the receives of a long outage.
          retry: { maxAttempts: 5, longest: Duration.seconds(8), outageTolerance: Duration.minutes(5) },
        },
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
        heartbeat: true,
        audited: chosen === 'prod',
        compositeAlarms: true,
      };
    default:
      throw new MailroomError(
        'BAD_STAGE',
        `The stage is "${chosen}", but must be local, dev or prod. Choose one with -c stage=dev.`,
      );
  }
}

/**
 * Properties that all stacks of a stage share: environment, name and termination protection.
 *
 * @param service - absent for the shared stack
 */
export function stackProps(stage: Stage, service?: string): StackProps {
  return {
    env: stage.env,
    stackName: ['mailroom', stage.name, ...(service === undefined ? [] : [service])].join('-'),
    terminationProtection: stage.removalPolicy !== RemovalPolicy.DESTROY,
  };
}

/** Outputs the URLs of a consumer's queues: `<name>QueueUrl` and `<name>DlqUrl`. */
export function consumerOutputs(stack: Stack, name: string, consumer: InboxConsumer): void {
  new CfnOutput(stack, `${name}QueueUrl`, { value: consumer.queue.queueUrl });
  new CfnOutput(stack, `${name}DlqUrl`, { value: consumer.deadLetterQueue.queueUrl });
}
