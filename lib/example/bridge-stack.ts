import { type App, Stack } from 'aws-cdk-lib';
import type { Construct } from 'constructs';
import { BRIDGED } from '../../lambdas/example/events.ts';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { type BridgeDestination, bridgeTo } from '../consumer/bridge-destination.ts';
import { lambdaEntry } from '../functions/service-function.ts';
import { InboxConsumer } from '../inbox-consumer.ts';
import type { Mailroom } from '../mailroom.ts';
import { consumerOutputs, type Stage, stackProps } from './stage.ts';

/** The brokers that the bridge can send to, by the context value `bridge`. */
const BROKERS = {
  jetstream: {
    kind: 'NATS JetStream',
    name: 'subjects orders.*',
    entry: 'example/bridge/jet-stream.handler',
  },
  kafka: { kind: 'Kafka', name: 'topic orders', entry: 'example/bridge/kafka.handler' },
  rabbitmq: { kind: 'RabbitMQ', name: 'exchange orders', entry: 'example/bridge/rabbit.handler' },
} as const;

/** A broker for the bridge, and the handler that sends to it. */
interface Bridge {
  readonly target: BridgeDestination;
  readonly entry: string;
}

/**
 * Reads the broker of the bridge: `-c bridge=jetstream -c bridgeTo=127.0.0.1:4222`.
 *
 * @returns `undefined` without these context values: the system has no bridge
 * @throws `BAD_CONFIG` if the broker is unknown or has no address
 */
export function readBridge(app: App): Bridge | undefined {
  const chosen: unknown = app.node.tryGetContext('bridge');
  if (chosen === undefined) return undefined;
  const [, broker] = Object.entries(BROKERS).find(([name]) => name === chosen) ?? [];
  const addresses: unknown = app.node.tryGetContext('bridgeTo');
  if (broker === undefined || typeof addresses !== 'string') {
    throw new MailroomError(
      'BAD_CONFIG',
      `The context value bridge is "${chosen}" and bridgeTo is "${addresses}". Set bridge to one of ${Object.keys(BROKERS).join(', ')}, and ` +
        'bridgeTo to the address of its broker, such as 127.0.0.1:4222.',
    );
  }
  const { kind, name, entry } = broker;
  return { target: bridgeTo.broker({ kind, name, addresses }), entry };
}

/** The bridge: forwards the events of orders to a broker. */
export class BridgeStack extends Stack {
  constructor(scope: Construct, id: string, stage: Stage, mailroom: Mailroom, { target, entry }: Bridge) {
    super(scope, id, stackProps(stage, 'bridge'));
    const bridge = new InboxConsumer(this, 'Bridge', {
      mailroom,
      name: 'bridge',
      service: 'bridge',
      events: BRIDGED,
      entry: lambdaEntry(entry),
      forwardsTo: target,
      ...stage.consumers,
      removalPolicy: stage.removalPolicy,
    });
    consumerOutputs(this, 'Bridge', bridge);
  }
}
