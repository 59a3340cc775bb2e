export type { DataFilter, FilterOperator, Scalar, Subscription, TextOperator } from './bus/data-filter.ts';
export type { Bus, BusEntry, BusResult } from './bus/event-bus.ts';
export { type EventBridgeBusDeps, eventBridgeBus } from './bus/eventbridge-bus.ts';
export { type ClientSettings, clientSettings } from './client-settings.ts';
export { type Clock, systemClock } from './clock.ts';
export {
  type AtOnceConfig,
  type ConsumerConfig,
  type ProducerConfig,
  readAtOnceConfig,
  readConsumerConfig,
  readProducerConfig,
} from './config.ts';
export type { Environment } from './config-codec.ts';
export { type ConsumerDeps, type ConsumerHandler, createConsumer } from './consume/consumer.ts';
export {
  type Handler,
  type LeasedContext,
  type LeasedHandler,
  leased,
  type TransactionalContext,
  type TransactionalHandler,
  transactional,
} from './consume/handler.ts';
export type { JsonOf } from './consume/json-of.ts';
export type { Queue } from './consume/queue.ts';
export { type SqsQueueDeps, sqsQueue } from './consume/sqs-queue.ts';
export type { MailroomErrorCode } from './error-codes.ts';
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
} from './errors.ts';
export {
  type AnyEventDefinition,
  defineEvent,
  type Envelope,
  type EventDefinition,
  type EventDraft,
  type EventInput,
  type EventRef,
  type ReceivedEvent,
} from './event.ts';
export {
  type AnyForeignEventDefinition,
  type ForeignEvent,
  type ForeignEventDefinition,
  type ForeignIdentity,
  type ForeignSubscription,
  foreignEvent,
} from './foreign-event.ts';
export type { EventOf, HandledDefinition } from './handled-event.ts';
export { type LambdaParts, lambdaConsumer, lambdaOutbox } from './lambda.ts';
export { lambdaPublisher } from './lambda-publisher.ts';
export type { ParentLogger } from './logger.ts';
export type { Redact } from './redaction.ts';
export { type DynamoTableDeps, dynamoTable } from './store/dynamo-table.ts';
export { eventIdTime, isEventId, type RandomBytes } from './store/event-id.ts';
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
export { type EventFilter, type SubscribeOptions, subscribe } from './subscribe.ts';
export {
  type LogFields,
  type MetricName,
  powertoolsTelemetry,
  type Telemetry,
  type TelemetryOptions,
} from './telemetry.ts';
export type { TraceContext } from './trace-context.ts';
export type { SpanAttribute, SpanFailure, SpanOptions, Tracer, TracerSpan } from './tracer.ts';
export { type Commit, createOutbox, type Outbox, type OutboxDeps } from './write/outbox.ts';
export type { CausingEvent, OutboxEntry } from './write/outbox-entry.ts';
export {
  type AtOnceParts,
  type AtOncePublisher,
  type AtOncePublisherDeps,
  createAtOncePublisher,
} from './write/publish-at-once.ts';
