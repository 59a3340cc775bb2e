/**
 * `cdk-mailroom/bridge`: bridges, consumers that send their events to a queue, topic or stream of another system.
 *
 * @example
 * ```ts
 * import { SQS } from '@aws-sdk/client-sqs';
 *
 * export const handler = lambdaConsumer(bridge({ to: sqsTarget({ client: new SQS(clientSettings) }), events: [OrderPlaced] }));
 * ```
 */

export type { BridgeReceipt } from './base/bridge-receipt.ts';
export type { BatchAnswer } from './bridge/aws-answers.ts';
export { type BridgeOptions, bridge } from './bridge/bridge.ts';
export type { BridgedEvent, BridgeRefusal, BridgeResult, BridgeTarget } from './bridge/bridge-target.ts';
export type { BridgeHeaders } from './bridge/event-headers.ts';
export {
  type JetStreamPublisher,
  jetStreamTarget,
  type NatsConnection,
} from './bridge/jet-stream-target.ts';
export type { KafkaProduced } from './bridge/kafka-partitions.ts';
export { type KafkaClient, type KafkaProducer, kafkaTarget } from './bridge/kafka-target.ts';
export { type KinesisSender, kinesisTarget } from './bridge/kinesis-target.ts';
export { type RabbitChannel, type RabbitConnection, rabbitTarget } from './bridge/rabbit-target.ts';
export { type SnsPublisher, snsTarget } from './bridge/sns-target.ts';
export { type SqsSender, sqsTarget } from './bridge/sqs-target.ts';
