export type { Subscription } from '../lambdas/runtime/bus/data-filter.ts';
export type { EventRef } from '../lambdas/runtime/event.ts';
export type { IInboxConsumer } from './consumer.ts';
export type { ConsumerSlo } from './consumer-slo.ts';
export { type AlarmTopics, DeliveryAlarms, type DeliveryAlarmsProps } from './delivery-alarms.ts';
export type { AlarmThresholds } from './delivery-thresholds.ts';
export { MailroomBus, type MailroomBusProps } from './event-bus.ts';
export type { EarlierName } from './fixed-name.ts';
export type { MailroomFunctionProps, PassedFunctionProps } from './function-props.ts';
export { InboxConsumer } from './inbox-consumer.ts';
export type { ConsumerAlias, InboxConsumerProps, RetryOptions } from './inbox-consumer-props.ts';
export { Mailroom } from './mailroom.ts';
export type { MailroomProps } from './mailroom-props.ts';
export { MailroomTable, type MailroomTableProps } from './mailroom-table.ts';
export { OutboxAudit, type OutboxAuditOptions, type OutboxAuditProps } from './outbox-audit.ts';
export {
  OutboxHeartbeat,
  type OutboxHeartbeatOptions,
  type OutboxHeartbeatProps,
} from './outbox-heartbeat.ts';
export { OutboxRelay, type OutboxRelayOptions, type OutboxRelayProps } from './outbox-relay.ts';
export type { ProducerProps, PublishAtOnceOptions } from './producer-props.ts';
export type { PassedQueueProps } from './queue-props.ts';
export { ServiceFunction, type ServiceFunctionProps } from './service-function.ts';
