/**
 * `cdk-mailroom/runtime`: events, handlers, consumers and the outbox, for Lambda functions and services. Types of parameters that an
 * application seldom names, and the parts to compose a function by hand, are in `cdk-mailroom/internals`.
 *
 * @example
 * ```ts
 * export const handler = lambdaConsumer(leased(OrderPlaced, async (event, ctx) => charge(event.data, ctx)));
 * ```
 */
export { clientSettings } from './base/client-settings.ts';
export { type Clock, systemClock } from './base/clock.ts';
export { type ProducerConfig, readProducerConfig } from './base/config.ts';
export type { MailroomErrorCode } from './base/error-codes.ts';
export {
  AlreadyProcessed,
  errorCode,
  isMailroomError,
  MailroomError,
  PoisonMessage,
  RetryLater,
} from './base/errors.ts';
export { nothingHappened } from './base/nothing-happened.ts';
export { type EventOrder, latest, strict } from './base/order.ts';
export type { Bus } from './bus/event-bus.ts';
export { eventBridgeBus } from './bus/eventbridge-bus.ts';
export type { Around } from './consume/around.ts';
export { transactionalBatch } from './consume/batch-handler.ts';
export {
  type Handler,
  type LeasedContext,
  leased,
  type PastEffect,
  type RejectedContext,
  type TransactionalContext,
  transactional,
} from './consume/handler.ts';
export { throwForStatus } from './consume/http-status.ts';
export { startExecution } from './consume/start-execution.ts';
export type { Subscription } from './events/data-filter.ts';
export {
  type AnyEventDefinition,
  defineEvent,
  type Envelope,
  type EventDefinition,
  type EventDraft,
} from './events/event.ts';
export {
  type EventOf,
  type ExternalEvent,
  type ExternalEventDefinition,
  externalEvent,
} from './events/external-event.ts';
export { subscribe } from './events/subscribe.ts';
export { lambdaConsumer, lambdaOutbox } from './lambda.ts';
export { powertoolsTelemetry, type Telemetry } from './observe/telemetry.ts';
export { entryEventId, type OutboxEntry } from './outbox/outbox-entry.ts';
export { type ConsumerHandler, createConsumer } from './sources/sqs/consumer.ts';
export type { Queue } from './sources/sqs/queue.ts';
export { sqsQueue } from './sources/sqs/sqs-queue.ts';
export { dynamoTable } from './store/dynamo/dynamo-table.ts';
export { lambdaPublisher } from './store/dynamo/lambda-publisher.ts';
export { type Commit, createOutbox, type Outbox } from './store/dynamo/outbox.ts';
export { ignoreOlder, nextVersion, type VersionedWrite } from './store/row-version.ts';
export { lambdaPayloads } from './store/s3-payloads.ts';
export type { Item, Key, Table, TransactAction, Write } from './store/table.ts';
