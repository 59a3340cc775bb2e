/**
 * `cdk-mailroom/forward`: bridges, consumers that send their events to a queue, topic or stream of another system.
 *
 * @example
 * ```ts
 * import { SQS } from '@aws-sdk/client-sqs';
 *
 * export const handler = lambdaConsumer(forward({ to: sqsTarget({ client: new SQS(clientSettings) }), events: [OrderPlaced] }));
 * ```
 */

export type { ForwardReceipt } from './base/forward-receipt.ts';
export type { BatchAnswer } from './forward/aws-answers.ts';
export type { ForwardHeaders } from './forward/event-headers.ts';
export { type ForwardOptions, forward } from './forward/forward.ts';
export type { ForwardEntry, ForwardRefusal, ForwardResult, ForwardTarget } from './forward/forward-target.ts';
export {
  type JetStreamPublisher,
  jetStreamTarget,
  type NatsConnection,
} from './forward/jet-stream-target.ts';
export type { KafkaProduced } from './forward/kafka-partitions.ts';
export { type KafkaClient, type KafkaProducer, kafkaTarget } from './forward/kafka-target.ts';
export { type KinesisSender, kinesisTarget } from './forward/kinesis-target.ts';
export { type RabbitChannel, type RabbitConnection, rabbitTarget } from './forward/rabbit-target.ts';
export { type SnsPublisher, snsTarget } from './forward/sns-target.ts';
export { type SqsSender, sqsTarget } from './forward/sqs-target.ts';
