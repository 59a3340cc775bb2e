import { type IConnectable, Port } from 'aws-cdk-lib/aws-ec2';
import type { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { IStream } from 'aws-cdk-lib/aws-kinesis';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { ISecret } from 'aws-cdk-lib/aws-secretsmanager';
import type { ITopic } from 'aws-cdk-lib/aws-sns';
import type { IQueue } from 'aws-cdk-lib/aws-sqs';
import { checkGrant } from '../checks/granted.ts';

/** The variable with the ARN of the secret of {@link BrokerOptions.secret}. */
const BRIDGE_SECRET = 'MAILROOM_BRIDGE_SECRET';

/** A broker to which a bridge sends. */
export interface BrokerOptions {
  /** The protocol, as commands show it. */
  readonly kind: 'Kafka' | 'NATS JetStream' | 'RabbitMQ';
  /** The topic, subject or exchange, as commands show it, e.g. `topic orders`. */
  readonly name: string;
  /** Its addresses, separated by commas: the function gets them as `MAILROOM_BRIDGE_TO`. */
  readonly addresses: string;
  /** The cluster, whose security groups then accept the function's; the function needs `functionProps.vpc`. @default no rule is added */
  readonly cluster?: IConnectable;
  /** The port of that rule. Required with `cluster`. */
  readonly port?: number;
  /** Credentials: the function may read them, and gets the ARN as `MAILROOM_BRIDGE_SECRET`. @default none */
  readonly secret?: ISecret;
  /** Further rights of the function's role, such as `kafka-cluster:WriteData` for IAM access to MSK. @default none */
  readonly policy?: readonly PolicyStatement[];
}

/** The target of a bridge, made by {@link bridgeTo}. */
export interface BridgeDestination {
  /** The service or protocol, as commands show it. */
  readonly kind: string;
  /** Its name, as commands show it, e.g. `queue partner.fifo`. */
  readonly name: string;
  /** The address that the targets of `cdk-mailroom/bridge` read. */
  readonly address: string;
  /** It has groups whose order matters to its readers. @default false */
  readonly fifo?: boolean;
  /** Its cluster, if it is in a VPC, and the port of its brokers. @default none */
  readonly cluster?: IConnectable;
  readonly port?: number;
  /** Lets the function send to it. */
  grant(handler: LambdaFunction): void;
}

/**
 * The targets of a bridge, for `forwardsTo` of an `InboxConsumer`. Each grants the function the right to send, and has the address that the
 * targets of `cdk-mailroom/bridge` read.
 *
 * @example
 * ```ts
 * new InboxConsumer(this, 'ToPartner', { ...props, order: strict(), forwardsTo: bridgeTo.queue(partnerQueue) });
 * ```
 */
export const bridgeTo = {
  /** An SQS queue, standard or FIFO. */
  queue: (queue: IQueue): BridgeDestination => ({
    kind: 'SQS',
    name: `queue ${queue.queueName}`,
    address: queue.queueUrl,
    fifo: queue.fifo,
    grant: (handler) => checkGrant(handler, queue.grantSendMessages(handler), queue),
  }),
  /** An SNS topic, standard or FIFO. */
  topic: (topic: ITopic): BridgeDestination => ({
    kind: 'SNS',
    name: `topic ${topic.topicName}`,
    address: topic.topicArn,
    fifo: topic.fifo,
    grant: (handler) => checkGrant(handler, topic.grantPublish(handler), topic),
  }),
  /** A Kinesis data stream. */
  stream: (stream: IStream): BridgeDestination => ({
    kind: 'Kinesis',
    name: `stream ${stream.streamName}`,
    address: stream.streamArn, // with its account and region: an imported stream can be in another
    grant: (handler) => checkGrant(handler, stream.grantWrite(handler), stream),
  }),
  /** A topic, subject or exchange of a broker that you run. */
  broker: ({ addresses: address, secret, policy = [], ...broker }: BrokerOptions): BridgeDestination => ({
    ...broker,
    address,
    grant: (handler) => {
      broker.cluster?.connections.allowFrom(handler, Port.tcp(broker.port ?? 0));
      if (secret !== undefined) {
        checkGrant(handler, secret.grantRead(handler), secret);
        handler.addEnvironment(BRIDGE_SECRET, secret.secretArn);
      }
      for (const statement of policy) handler.addToRolePolicy(statement);
    },
  }),
};
