export { type Audit, type AuditDeps, type AuditRange, type AuditReport, createAudit } from './audit.ts';
export type { DoubledEvent } from './audit-doubles.ts';
export type { DeployedRule, DeployedRules, Drift } from './audit-drift.ts';
export {
  type AuditHandlerDeps,
  type AuditList,
  type AuditSummary,
  createAuditHandler,
} from './audit-handler.ts';
export type { ConsumerLedger, MissingEvent } from './audit-ledger.ts';
export { cloudWatchQueueAges, type QueueAges } from './audit-queue-age.ts';
export { type Repair, type RepairDeps, repairMissing } from './audit-repair.ts';
export { type ClientSettings, clientSettings } from './client-settings.ts';
export { type Clock, systemClock } from './clock.ts';
export {
  type AuditConfig,
  type ConsumerConfig,
  type Environment,
  type ProducerConfig,
  type RelayConfig,
  readAuditConfig,
  readConsumerConfig,
  readProducerConfig,
  readRelayConfig,
} from './config.ts';
export { type ConsumerDeps, createConsumer } from './consumer.ts';
export {
  createDeadLetterWatch,
  type DeadLetterWatch,
  type DeadLetterWatchDeps,
} from './dead-letter-watch.ts';
export type { ConsumerEntry, Directory, MailroomEntry } from './directory.ts';
export { type DynamoTableDeps, dynamoTable } from './dynamo-table.ts';
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
export { type EventBridgeBusDeps, eventBridgeBus } from './eventbridge-bus.ts';
export { eventBridgeRules } from './eventbridge-rules.ts';
export {
  type Handler,
  type LeasedContext,
  type LeasedHandler,
  leased,
  type TransactionalContext,
  type TransactionalHandler,
  transactional,
} from './handler.ts';
export { type LambdaParts, lambdaConsumer, lambdaOutbox } from './lambda.ts';
export {
  allowTooOld,
  type Decision,
  discardMessage,
  type MessageNote,
  type Resolution,
  resolveMessage,
} from './message-operations.ts';
export {
  discardDead,
  type Note,
  type OperationDeps,
  recordOperation,
  requeueDead,
} from './operations.ts';
export {
  type Cause,
  type Commit,
  createOutbox,
  type Outbox,
  type OutboxDeps,
  type OutboxEntry,
} from './outbox.ts';
export type { Queue } from './queue.ts';
export type { Letter, QueueDepth, Queues } from './queues.ts';
export type { RelayHandlerDeps } from './relay.ts';
export { createRelayStream } from './relay-stream.ts';
export { createRelaySweep, type RelaySweep, type RelaySweepDeps, type SweepReport } from './relay-sweep.ts';
export type { OutboxRow, OutboxStatus } from './rows.ts';
export { type SqsQueueDeps, sqsQueue } from './sqs-queue.ts';
export { sqsQueues } from './sqs-queues.ts';
export { readDirectory } from './ssm-directory.ts';
export type { SweepRange, SweepRangeReport } from './sweep-range.ts';
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
  Table,
  TransactAction,
  Update,
  Write,
} from './table.ts';
export { type MetricName, powertoolsTelemetry, type Telemetry } from './telemetry.ts';
