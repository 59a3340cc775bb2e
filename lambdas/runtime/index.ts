export { type Audit, type AuditDeps, type AuditRange, type AuditReport, createAudit } from './audit/audit.ts';
export type { DoubledEvent } from './audit/audit-doubles.ts';
export type { DeployedRule, DeployedRules, Drift } from './audit/audit-drift.ts';
export {
  type AuditHandlerDeps,
  type AuditList,
  type AuditSummary,
  createAuditHandler,
} from './audit/audit-handler.ts';
export type { ConsumerLedger, MissingEvent } from './audit/audit-ledger.ts';
export { cloudWatchQueueAges, type QueueAges } from './audit/audit-queue-age.ts';
export { type Repair, type RepairDeps, repairMissing } from './audit/audit-repair.ts';
export type { Bus, BusEntry, BusResult } from './bus/event-bus.ts';
export { type EventBridgeBusDeps, eventBridgeBus } from './bus/eventbridge-bus.ts';
export { eventBridgeRules } from './bus/eventbridge-rules.ts';
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
export { type ConsumerDeps, createConsumer } from './consume/consumer.ts';
export {
  type Handler,
  type LeasedContext,
  type LeasedHandler,
  leased,
  type TransactionalContext,
  type TransactionalHandler,
  transactional,
} from './consume/handler.ts';
export type { Queue } from './consume/queue.ts';
export { type SqsQueueDeps, sqsQueue } from './consume/sqs-queue.ts';
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
export { eventIdTime, isEventId, type RandomBytes } from './event-id.ts';
export { type LambdaParts, lambdaConsumer, lambdaOutbox } from './lambda.ts';
export type { ConsumerEntry, Directory, MailroomEntry } from './operate/directory.ts';
export {
  allowTooOld,
  type Decision,
  discardMessage,
  type MessageNote,
  type Resolution,
  resolveMessage,
} from './operate/message-operations.ts';
export {
  discardDead,
  type Note,
  type OperationDeps,
  recordOperation,
  requeueDead,
} from './operate/operations.ts';
export type { Letter, QueueDepth, Queues } from './operate/queues.ts';
export { sqsQueues } from './operate/sqs-queues.ts';
export { readDirectory } from './operate/ssm-directory.ts';
export {
  createDeadLetterWatch,
  type DeadLetterWatch,
  type DeadLetterWatchDeps,
} from './relay/dead-letter-watch.ts';
export type { RelayHandlerDeps } from './relay/relay.ts';
export { createRelayStream } from './relay/relay-stream.ts';
export {
  createRelaySweep,
  type RelaySweep,
  type RelaySweepDeps,
  type SweepReport,
} from './relay/relay-sweep.ts';
export type { SweepRange, SweepRangeReport } from './relay/sweep-range.ts';
export type { OutboxRow, OutboxStatus } from './rows.ts';
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
export {
  type Cause,
  type Commit,
  createOutbox,
  type Outbox,
  type OutboxDeps,
  type OutboxEntry,
} from './write/outbox.ts';
