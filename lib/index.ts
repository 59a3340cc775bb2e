export type { EventOrder, LatestOrder, StrictOrder } from '../lambdas/runtime/base/order.ts';
export type { Subscription } from '../lambdas/runtime/events/data-filter.ts';
export type { EventRef } from '../lambdas/runtime/events/event.ts';
export { type BridgeDestination, type BrokerOptions, bridgeTo } from './consumer/bridge-destination.ts';
export type { EarlierName } from './consumer/fixed-name.ts';
export type {
  ConsumerAlias,
  ConsumerFunctionProps,
  ConsumerQueueProps,
  InboxConsumerProps,
  RetryOptions,
} from './consumer/inbox-consumer-props.ts';
export type { ExistingDatabase, MailroomDatabase, RdsDatabase } from './database/database-connection.ts';
export type { DatabaseAlarmsOptions } from './database-mailroom/database-alarms.ts';
export type {
  DatabaseConsumerProps,
  DatabaseLoginProps,
  DatabaseMailroom,
  DatabaseMailroomProps,
  DatabaseProducerProps,
} from './database-mailroom/database-mailroom.ts';
export type { DatabaseOutboxRelay, DatabaseRelayOptions } from './database-mailroom/database-outbox-relay.ts';
export {
  MysqlMailroom,
  type MysqlMailroomProps,
  type MysqlRelayOptions,
} from './database-mailroom/mysql-mailroom.ts';
export { PostgresMailroom, type PostgresMailroomProps } from './database-mailroom/postgres-mailroom.ts';
export { DeliveryAlarms, type DeliveryAlarmsProps } from './delivery-alarms.ts';
export type { MailroomFunctionProps, PassedFunctionProps } from './functions/function-props.ts';
export { ServiceFunction, type ServiceFunctionProps } from './functions/service-function.ts';
export { InboxConsumer } from './inbox-consumer.ts';
export type { AuditedDatabase } from './mailroom/audited-database.ts';
export type { BusAcceptOptions } from './mailroom/bus-acceptance.ts';
export {
  BusForward,
  type BusForwardOptions,
  type BusForwardProps,
} from './mailroom/bus-forward.ts';
export type { ConsumerSlo, IInboxConsumer } from './mailroom/consumer-interface.ts';
export { type IMailroom, MailroomBase } from './mailroom/mailroom-base.ts';
export { MailroomBus } from './mailroom/mailroom-bus.ts';
export type { MailroomBusProps } from './mailroom/mailroom-bus-props.ts';
export type { MailroomProps, ProducerProps, PublishAtOnceOptions } from './mailroom/mailroom-props.ts';
export { MailroomTable, type MailroomTableProps } from './mailroom/mailroom-table.ts';
export { OutboxAudit, type OutboxAuditOptions, type OutboxAuditProps } from './mailroom/outbox-audit.ts';
export {
  OutboxHeartbeat,
  type OutboxHeartbeatOptions,
  type OutboxHeartbeatProps,
} from './mailroom/outbox-heartbeat.ts';
export { OutboxRelay, type OutboxRelayOptions, type OutboxRelayProps } from './mailroom/outbox-relay.ts';
export type { PayloadOptions } from './mailroom/payload-bucket.ts';
export type { IMailroomTable } from './mailroom/row-grants.ts';
export { Mailroom } from './mailroom.ts';
export type { AlarmTopics } from './monitoring/alarm-plan.ts';
export type { AlarmThresholds } from './monitoring/thresholds.ts';
export { OverviewDashboard, type OverviewDashboardProps } from './overview-dashboard.ts';
