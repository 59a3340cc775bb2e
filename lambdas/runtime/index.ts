export { type ClientSettings, clientSettings } from './base/client-settings.ts';
export { type Clock, systemClock } from './base/clock.ts';
export {
  type AtOnceConfig,
  type ProducerConfig,
  readAtOnceConfig,
  readProducerConfig,
  type ServiceConfig,
  type TableConfig,
} from './base/config.ts';
export type { Environment } from './base/config-codec.ts';
export {
  type ConsumerConfig,
  type InboxConfig,
  type ProcessingConfig,
  type QueueConfig,
  readConsumerConfig,
} from './base/consumer-config.ts';
export type { MailroomErrorCode } from './base/error-codes.ts';
export {
  AlreadyProcessed,
  type CancellationReason,
  ConditionFailed,
  errorCode,
  FenceLost,
  isMailroomError,
  MailroomError,
  type MailroomErrorOfCode,
  PoisonMessage,
  type RetryDelay,
  RetryLater,
  TransactionCancelled,
} from './base/errors.ts';
export type { JsonOf } from './base/json.ts';
export { nothingHappened } from './base/nothing-happened.ts';
export { type EventOrder, type LatestOrder, latest, type StrictOrder, strict } from './base/order.ts';
export type { Bus, BusEntry, BusResult } from './bus/event-bus.ts';
export { type EventBridgeBusDeps, eventBridgeBus } from './bus/eventbridge-bus.ts';
export type { ProcessingDeps } from './consume/consumer-context.ts';
export {
  type Handler,
  type HandlerOptions,
  type LeasedContext,
  type LeasedHandler,
  leased,
  type OnceEachOptions,
  type PastEffect,
  type RejectedContext,
  type TransactionalContext,
  type TransactionalHandler,
  transactional,
} from './consume/handler.ts';
export { type ProviderResponse, throwForStatus } from './consume/http-status.ts';
export type { DataFilter, FilterOperator, Scalar, Subscription, TextOperator } from './events/data-filter.ts';
export {
  type AnyEventDefinition,
  defineEvent,
  type Envelope,
  type EventDefinition,
  type EventDraft,
  type EventInput,
  type EventRef,
  type Numbered,
  type ReceivedEvent,
} from './events/event.ts';
export {
  type AnyExternalEventDefinition,
  type EventOf,
  type ExternalEvent,
  type ExternalEventDefinition,
  type ExternalIdentity,
  type ExternalSubscription,
  externalEvent,
  type HandledDefinition,
} from './events/external-event.ts';
export { type EventFilter, type SubscribeOptions, subscribe } from './events/subscribe.ts';
export { type LambdaParts, lambdaConsumer, lambdaOutbox } from './lambda.ts';
export type { ParentLogger } from './observe/logger.ts';
export type { Redact } from './observe/redaction.ts';
export {
  type LogFields,
  type MetricName,
  powertoolsTelemetry,
  type Telemetry,
  type TelemetryOptions,
} from './observe/telemetry.ts';
export type { TraceContext } from './observe/trace-context.ts';
export { type CausingEvent, entryEventId, type OutboxEntry } from './outbox/outbox-entry.ts';
export { type ConsumerDeps, type ConsumerHandler, createConsumer } from './sources/sqs/consumer.ts';
export type { Queue } from './sources/sqs/queue.ts';
export { type SqsQueueDeps, sqsQueue } from './sources/sqs/sqs-queue.ts';
export type { NotCancelled } from './store/dynamo/cancellation.ts';
export { type DynamoTableDeps, dynamoTable } from './store/dynamo/dynamo-table.ts';
export { lambdaPublisher } from './store/dynamo/lambda-publisher.ts';
export { type OrderSeed, orderSeed } from './store/dynamo/order-operator.ts';
export {
  type Commit,
  createOutbox,
  type Outbox,
  type OutboxDeps,
  type Rescheduled,
} from './store/dynamo/outbox.ts';
export {
  type AtOnceParts,
  type AtOncePublisher,
  type AtOncePublisherDeps,
  createAtOncePublisher,
} from './store/dynamo/publish-at-once.ts';
export { eventIdTime, isEventId, type RandomBytes } from './store/event-id.ts';
export type { SequenceOf } from './store/keys.ts';
export {
  type IgnoreOlderOptions,
  ignoreOlder,
  nextVersion,
  type RowVersionOptions,
  type VersionedWrite,
} from './store/row-version.ts';
export type { EffectState } from './store/stored-effect.ts';
export type {
  ConditionCheck,
  Delete,
  EachResult,
  EachUpdate,
  Expression,
  Item,
  Key,
  Page,
  Put,
  Query,
  Storable,
  StorableItem,
  Table,
  TransactAction,
  Update,
  Write,
} from './store/table.ts';
