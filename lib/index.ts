export { MailroomBus } from './event-bus.ts';
export { InboxConsumer, type InboxConsumerProps } from './inbox-consumer.ts';
export { Mailroom, type MailroomProps, type ProducerProps } from './mailroom.ts';
export { MailroomTable, type MailroomTableProps } from './mailroom-table.ts';
export { OutboxRelay, type OutboxRelayOptions, type OutboxRelayProps } from './outbox-relay.ts';
export { ServiceFunction, type ServiceFunctionProps } from './service-function.ts';
