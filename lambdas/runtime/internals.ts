/**
 * `cdk-mailroom/internals`: for tools that read or write the table, for your own implementations of `Table`, `Bus`, `Queue` and
 * `Telemetry`, for functions composed without `lambdaConsumer` and `lambdaOutbox`, and for code that names the type of a parameter. They
 * can change in a minor version.
 *
 * @example
 * ```ts
 * import { type ConsumerDeps, readConsumerConfig } from 'cdk-mailroom/internals';
 * ```
 */
export type { ClientSettings } from './base/client-settings.ts';
export {
  type AtOnceConfig,
  type RelayConfig,
  readAtOnceConfig,
  readRelayConfig,
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
export {
  AlreadyCommitted,
  type CancellationReason,
  ConditionFailed,
  FenceLost,
  type MailroomErrorOfCode,
  type RetryDelay,
  TransactionCancelled,
} from './base/errors.ts';
export type { JsonOf } from './base/json.ts';
export type { LatestOrder, StrictOrder } from './base/order.ts';
export { type PayloadConfig, readPayloadConfig } from './base/payload-config.ts';
export type { BusEntry, BusResult } from './bus/event-bus.ts';
export type { EventBridgeBusDeps } from './bus/eventbridge-bus.ts';
export type { HandledRun } from './consume/around.ts';
export type { BatchCommit, CausedDraft } from './consume/batch-commit.ts';
export type { ProcessingDeps } from './consume/consumer-context.ts';
export type {
  DurableFunctionClient,
  DurableFunctionExecution,
  ExecutionOfEvent,
  StateMachineClient,
  StateMachineExecution,
} from './consume/execution-starter.ts';
export type {
  BatchContext,
  HandlerOptions,
  LeasedHandler,
  LeasedOptions,
  OnceEachOptions,
  TransactionalHandler,
} from './consume/handler.ts';
export type { ProviderResponse } from './consume/http-status.ts';
export type { HandlerLimit, Limit } from './consume/limits.ts';
export type { StartedExecution } from './consume/start-execution.ts';
export type { DataFilter, FilterOperator, Scalar, TextOperator } from './events/data-filter.ts';
export type { EventInput, EventRef, Numbered, ReceivedEvent } from './events/event.ts';
export type {
  AnyExternalEventDefinition,
  ExternalIdentity,
  ExternalSubscription,
  HandledDefinition,
  HandledEvent,
} from './events/external-event.ts';
export type { NewPayload, PayloadOwner, PayloadReference, Payloads } from './events/payloads.ts';
export type { EventFilter, SubscribeOptions } from './events/subscribe.ts';
export type { LambdaParts, PayloadsOption } from './lambda.ts';
export type { ParentLogger } from './observe/logger.ts';
export type { Redact } from './observe/redaction.ts';
export type { InvocationContext, LogFields, MetricName, TelemetryOptions } from './observe/telemetry.ts';
export type { TraceContext } from './observe/trace-context.ts';
export type { CausingEvent } from './outbox/outbox-entry.ts';
export type { RelayHandlerDeps } from './relay/relay-context.ts';
export { createRelayStream } from './relay/relay-stream.ts';
export {
  createRelaySweep,
  type DeadLetterWatch,
  type RelaySweepDeps,
  type RelaySweepHandler,
  type SweepReport,
} from './relay/relay-sweep.ts';
export type { RepublishReport, RepublishRequest } from './relay/republish.ts';
export type { SweepRange, SweepRangeReport } from './relay/sweep-range.ts';
export type { ConsumerDeps } from './sources/sqs/consumer.ts';
export type { SqsQueueDeps } from './sources/sqs/sqs-queue.ts';
export type { NotCancelled } from './store/dynamo/cancellation.ts';
export type { DynamoTableDeps } from './store/dynamo/dynamo-table.ts';
export { orderSeed } from './store/dynamo/order-seed.ts';
export type { OutboxDeps, Rescheduled } from './store/dynamo/outbox.ts';
export {
  type AtOnceParts,
  type AtOncePublisher,
  type AtOncePublisherDeps,
  createAtOncePublisher,
} from './store/dynamo/publish-at-once.ts';
export { eventIdTime, isEventId, type RandomBytes } from './store/event-id.ts';
export type { SequenceOf } from './store/keys.ts';
export type { OrderSeed } from './store/order-seed.ts';
export type { OutboxRow, OutboxStatus } from './store/outbox-row.ts';
export type { IgnoreOlderOptions, RowVersionOptions } from './store/row-version.ts';
export { type PayloadClient, type S3PayloadsDeps, s3Payloads } from './store/s3-payloads.ts';
export type { EffectState } from './store/stored-effect.ts';
export type { EncodedEnvelope, StoredOutboxRow } from './store/stored-envelope.ts';
export type {
  ConditionCheck,
  Delete,
  EachResult,
  EachUpdate,
  Expression,
  Page,
  Put,
  Query,
  Storable,
  StorableItem,
  Update,
} from './store/table.ts';
