export { clientSettings } from './client-settings.ts';
export { type Clock, systemClock } from './clock.ts';
export {
  type ConsumerConfig,
  type ProducerConfig,
  type RelayConfig,
  readConsumerConfig,
  readProducerConfig,
  readRelayConfig,
} from './config.ts';
export { type ConsumerDeps, createConsumer } from './consumer.ts';
export { dynamoTable } from './dynamo-table.ts';
export {
  AlreadyProcessed,
  type CancellationReason,
  ConditionFailed,
  errorCode,
  FenceLost,
  isConditionFailed,
  isTransactionCancelled,
  MailroomError,
  PoisonMessage,
  TransactionCancelled,
} from './errors.ts';
export {
  type AnyEventDefinition,
  defineEvent,
  type Envelope,
  type EventDefinition,
  type EventDraft,
  type EventInput,
  type EventOf,
} from './event.ts';
export type { Bus, BusEntry, BusResult } from './event-bus.ts';
export { eventIdTime, isEventId, type RandomBytes } from './event-id.ts';
export { eventBridgeBus } from './eventbridge-bus.ts';
export {
  type Handler,
  type LeasedContext,
  type LeasedHandler,
  leased,
  type TransactionalContext,
  type TransactionalHandler,
  transactional,
} from './handler.ts';
export { type Decision, type MessageNote, type Resolution, resolveMessage } from './message-operations.ts';
export { type Note, type OperationDeps, requeueDead } from './operations.ts';
export {
  type Cause,
  type Commit,
  createOutbox,
  type Outbox,
  type OutboxDeps,
  type OutboxEntry,
} from './outbox.ts';
export type { Queue } from './queue.ts';
export type { RelayHandlerDeps } from './relay.ts';
export { createRelayStream } from './relay-stream.ts';
export { createRelaySweep, type RelaySweep, type SweepReport } from './relay-sweep.ts';
export type { OutboxRow } from './rows.ts';
export { sqsQueue } from './sqs-queue.ts';
export type {
  ConditionCheck,
  Delete,
  EachResult,
  EachUpdate,
  Item,
  Key,
  Page,
  Put,
  Query,
  Table,
  TransactAction,
  Update,
  Write,
} from './table.ts';
export { type MetricName, powertoolsTelemetry, type Telemetry } from './telemetry.ts';
