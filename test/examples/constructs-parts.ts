import { Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import {
  InboxConsumer,
  Mailroom,
  type MailroomProps,
  type ProducerProps,
  ServiceFunction,
} from '../../lib/index.ts';
import { testApp } from '../infra/synth.ts';
import { type CfnTemplate, cloudFormationParts } from './cloudformation-parts.ts';
import type { Parts } from './parts.ts';

const OrderPlaced = { source: 'orders', type: 'OrderPlaced' };

const HANDLERS = 'docs/examples/handlers/src/';

/** The names that the examples give to the parts of the constructs: by the logical id without its hash. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/^MailroomRelayStreamDynamoDBEventSource.*/, 'StreamRelayMapping'],
  [/^MailroomRelayStream/, 'StreamRelay'],
  [/^MailroomRelayFailures/, 'RelayFailures'],
  [/^MailroomRelayScheduleAllow.*/, 'SweepSchedulePermission'],
  [/^MailroomRelaySchedule/, 'SweepSchedule'],
  [/^MailroomRelaySweep/, 'Sweep'],
  [/^Mailroom(Audit|Heartbeat)ScheduleAllow.*/, '$1SchedulePermission'],
  [/^Mailroom(Audit|Heartbeat)Function/, '$1'],
  [/^Mailroom(Claim|Service)orders/, '$1Orders'],
  [/^Mailroom/, ''],
  [/^ReceiptsFunctionSqsEventSource.*/, 'ReceiptsMapping'],
  [/^ReceiptsFunction/, 'Receipts'],
];

/** What the constructs deploy for the examples' producer and consumer. */
export function constructsTemplate(
  props: MailroomProps = { audit: {} },
  producer: Pick<ProducerProps, 'publishAtOnce'> = {},
): CfnTemplate {
  const stack = new Stack(testApp(), 'Shop');
  const mailroom = new Mailroom(stack, 'Mailroom', props);
  const placeOrder = new ServiceFunction(stack, 'PlaceOrder', {
    entry: `${HANDLERS}place-order.ts`,
    service: 'orders',
  });
  mailroom.addProducer(placeOrder, {
    ...producer,
    service: 'orders',
    publishes: [OrderPlaced],
    domainKeys: ['ORDER#*'],
  });
  new InboxConsumer(stack, 'Receipts', {
    mailroom,
    name: 'receipts',
    service: 'receipts',
    events: [OrderPlaced],
    entry: `${HANDLERS}receipts.ts`,
    domainKeys: ['RECEIPT#*'],
  });
  const template = JSON.stringify(Template.fromStack(stack).toJSON());
  // A literal in the template of the constructs.
  // Without the CDK, a stack has no construct path.
  return JSON.parse(
    template.replaceAll(
      '\\"stack\\":\\"Shop\\",\\"stackPath\\":\\"Shop\\"',
      '\\"stack\\":\\"{AWS::StackName}\\"',
    ),
  );
}

/** The parts that the constructs deploy, by the names that they have in the examples. */
export function constructsParts(...props: Parameters<typeof constructsTemplate>): Parts {
  return cloudFormationParts(constructsTemplate(...props), nameOf);
}

/** The name of a part of the constructs; `undefined` for those that only CloudFormation can have. */
export function nameOf(logicalId: string): string | undefined {
  // CloudFormation refuses a renamed consumer because this parameter's logical id contains the name.
  if (logicalId.startsWith('ReceiptsName0')) return undefined;
  const id = logicalId.replace(/[0-9A-F]{8}$/, '');
  const [pattern, name] = NAMES.find(([pattern]) => pattern.test(id)) ?? [/^/, ''];
  return id
    .replace(pattern, name)
    .replace(/RoleGrants$/, 'Grants')
    .replace(/EventInvokeConfig$/, 'Invoke');
}
