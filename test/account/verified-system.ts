import type { App } from 'aws-cdk-lib';
import { CfnOutput, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { EventBus, Rule } from 'aws-cdk-lib/aws-events';
import { SqsQueue } from 'aws-cdk-lib/aws-events-targets';
import { type IRole, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { Architecture, FunctionUrlAuthType } from 'aws-cdk-lib/aws-lambda';
import { NodejsFunction } from 'aws-cdk-lib/aws-lambda-nodejs';
import { LogGroup } from 'aws-cdk-lib/aws-logs';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { MAILROOM_TAG } from '../../lambdas/runtime/base/resource-tags.ts';
import { type OrderSystem, orderSystem } from '../../lib/example/order-system.ts';
import { readStage, type Stage, stackProps } from '../../lib/example/stage.ts';
import { BUNDLING, RUNTIME, ServiceFunction } from '../../lib/functions/service-function.ts';
import { tag } from '../../lib/mailroom/tags.ts';

/** The handler of every probe, relative to the folder in which `cdk` runs. */
const ENTRY = 'test/account/probe.handler.ts';

/** The events that tests listen to: no consumer has them. Their queues are deployed, so that a killed run leaves nothing else behind. */
const LISTENED = [
  { source: 'orders', type: 'ParcelWeighed' },
  { source: 'orders', type: 'ParcelForged' },
  { source: 'bank', type: 'ParcelForged' },
];

/** Deploys the order system with its probes. */
export function verifiedSystem(app: App, stage: Stage): void {
  new ProbesStack(app, 'Probes', stage, orderSystem(app, stage));
}

/**
 * The stage that is verified: like `local`, it retains nothing and retries within seconds. Like `prod`, its API requires a
 * signature, and in AWS it sweeps once a minute and has composite alarms.
 *
 * @param name - of the deployment, as `randomName` returns it
 * @param env - with `AWS_ENDPOINT_URL` it is for a local engine, else for the account of `CDK_DEFAULT_ACCOUNT`
 */
export function verifyStage(name: string, env: Readonly<Record<string, string | undefined>>): Stage {
  const stage = { ...readStage('local', env), name, ordersAuth: FunctionUrlAuthType.AWS_IAM };
  if (env.AWS_ENDPOINT_URL) return stage;
  return {
    ...stage,
    env: { account: env.CDK_DEFAULT_ACCOUNT, region: env.CDK_DEFAULT_REGION },
    sweepEvery: Duration.minutes(1),
    compositeAlarms: true,
  };
}

/**
 * Functions that try what a role may not do. Three run with the deployed role of a consumer, a producer and the relay. The
 * *intruder* has every right on the table, bus and queues, so only their own policies can stop it; what they stop, it may do on a
 * bus and a queue without a policy.
 */
class ProbesStack extends Stack {
  constructor(scope: App, id: string, stage: Stage, system: OrderSystem) {
    super(scope, id, stackProps(stage, 'probes'));
    const { mailroom, api } = system;
    const payments = mailroom.consumers.find(({ name }) => name === 'payments');
    this.probe('Consumer', payments?.function.role);
    this.probe('Producer', api.role);
    this.probe('Relay', mailroom.relay.streamFunction.role);
    this.intruder(system);
    for (const { source, type } of LISTENED) {
      const queue = new Queue(this, `${source}${type}`, { removalPolicy: RemovalPolicy.DESTROY });
      const eventPattern = { source: [source], detailType: [type] };
      new Rule(this, `${source}${type}Rule`, {
        eventBus: mailroom.bus,
        eventPattern,
        targets: [new SqsQueue(queue)],
      });
      new CfnOutput(this, `Listener${source}${type}Url`, { value: queue.queueUrl });
    }
  }

  private probe(id: string, role: IRole | undefined): void {
    if (role === undefined) throw new Error(`The probe ${id} has no role to run with`);
    const probe = new NodejsFunction(this, id, {
      entry: ENTRY,
      description: `Tries what the role of the ${id.toLowerCase()} may not do`,
      runtime: RUNTIME,
      architecture: Architecture.ARM_64,
      memorySize: 512,
      timeout: Duration.minutes(1),
      role,
      logGroup: new LogGroup(this, `${id}Logs`, { removalPolicy: RemovalPolicy.DESTROY }),
      bundling: BUNDLING,
    });
    new CfnOutput(this, `Probe${id}`, { value: probe.functionName });
  }

  private intruder({ mailroom }: OrderSystem): void {
    const openBus = new EventBus(this, 'OpenBus', { eventBusName: `${this.stackName}-open` });
    const openQueue = new Queue(this, 'OpenQueue', { removalPolicy: RemovalPolicy.DESTROY });
    const intruder = new ServiceFunction(this, 'Intruder', {
      entry: ENTRY,
      service: 'probes',
      description: 'Tries what the policies of the table, bus and queues deny',
      timeout: Duration.minutes(1),
      logRemovalPolicy: RemovalPolicy.DESTROY,
    });
    const every: readonly [string, readonly string[]][] = [
      ['dynamodb:*', [mailroom.table.tableArn]],
      ['events:PutEvents', [mailroom.bus.eventBusArn, openBus.eventBusArn]],
      ['sqs:*', [openQueue.queueArn, ...mailroom.consumers.map(({ queue }) => queue.queueArn)]],
    ];
    for (const [action, resources] of every)
      intruder.addToRolePolicy(new PolicyStatement({ actions: [action], resources: [...resources] }));
    // The queues recognize the roles of the Mailroom's functions by this tag.
    if (intruder.role) tag(intruder.role, { [MAILROOM_TAG]: mailroom.node.path });
    new CfnOutput(this, 'ProbeIntruder', { value: intruder.functionName });
    new CfnOutput(this, 'OpenBusName', { value: openBus.eventBusName });
    new CfnOutput(this, 'OpenQueueUrl', { value: openQueue.queueUrl });
  }
}
