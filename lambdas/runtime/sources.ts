/**
 * `cdk-mailroom/sources`: the inbox of consumers whose messages come from Kafka, Kinesis, JetStream, RabbitMQ or another source that delivers each
 * message at least once, in a Lambda function or in a process.
 *
 * @example
 * ```ts
 * const config = readInboxConfig(process.env);
 * const inbox = createInboxProcessor({ config, table: dynamoTable({ client, tableName: config.tableName }) });
 * ```
 */
export type { TableConfig } from './base/config.ts';
export { type InboxConfig, type ProcessingConfig, readInboxConfig } from './base/consumer-config.ts';
export type { DecodeBody } from './sources/body-decoder.ts';
export type { Consuming, KeepDeadLetter, SourceDeadLetter } from './sources/consuming.ts';
export { deadLetterText } from './sources/dead-letter-text.ts';
export {
  createInboxProcessor,
  type InboxProcessor,
  type InboxProcessorDeps,
  type ProcessOptions,
  type ProcessorDeps,
} from './sources/inbox-processor.ts';
export {
  consumeJetStream,
  type JetStreamConsumer,
  type JetStreamMessage,
} from './sources/jet-stream-consumer.ts';
export type { KafkaBatch, KafkaMessage } from './sources/kafka-batch.ts';
export { type KafkaConsumer, type KafkaRecord, type KafkaRun, kafkaRun } from './sources/kafka-consumer.ts';
export type { AnswerReason, MessageAnswer } from './sources/message-answer.ts';
export {
  consumeRabbit,
  type RabbitConsumerChannel,
  type RabbitConsumerConnection,
} from './sources/rabbit-consumer.ts';
export type { RabbitMessage, RabbitRetryChannel } from './sources/rabbit-retries.ts';
export { createSourceHandler, type SourceBatchResponse } from './sources/source-handler.ts';
export type { SourceMessage } from './sources/source-message.ts';
