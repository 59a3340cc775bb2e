import type { App } from 'aws-cdk-lib';
import { CfnOutput, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { EventBus } from 'aws-cdk-lib/aws-events';
import { type IRole, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { Architecture } from 'aws-cdk-lib/aws-lambda';
import { NodejsFunction } from 'aws-cdk-lib/aws-lambda-nodejs';
import { LogGroup } from 'aws-cdk-lib/aws-logs';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { type OrderSystem, orderSystem } from '../lib/example/order-system.ts';
import { type Stage, stackProps } from '../lib/example/stage.ts';
import { MAILROOM_TAG, tag } from '../lib/mailroom/tags.ts';
import { BUNDLING, RUNTIME, ServiceFunction } from '../lib/service-function.ts';

/** The handler of every probe, relative to the folder in which `cdk` runs. */
const ENTRY = 'verify/probe.handler.ts';

/** Deploys the order system with its probes. */
export function verifiedSystem(app: App, stage: Stage): void {
  new ProbesStack(app, 'Probes', stage, orderSystem(app, stage));
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
