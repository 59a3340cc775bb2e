import { Stack } from 'aws-cdk-lib';
import type { Construct } from 'constructs';
import { orderText } from '../../lambdas/runtime/base/order.ts';
import { type ConsumerEntry, consumerEntryName } from '../../lambdas/runtime/operations/directory.ts';
import { SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import type { ConsumerSettings } from '../checks/timings.ts';
import { type IInboxConsumer, SLO_PERCENTILE } from '../mailroom/consumer-interface.ts';
import { inboxEngine } from '../mailroom/database-inboxes.ts';
import { directoryEntry } from '../mailroom/directory-parameter.ts';
import { externalRuleName, subscribed } from './consumer-intake.ts';
import { inboxSince } from './fixed-name.ts';
import type { InboxConsumerProps } from './inbox-consumer-props.ts';

/** Writes the directory entry of a consumer: the locations of its parts, and what operators' tools must know of it. */
export function writeDirectoryEntry(
  consumer: IInboxConsumer & Construct,
  props: InboxConsumerProps,
  settings: ConsumerSettings,
): void {
  const table = props.mailroom.table.tableName;
  const entry = (): ConsumerEntry => ({
    stack: Stack.of(consumer).stackName,
    stackPath: Stack.of(consumer).node.path,
    name: props.name,
    service: props.service,
    events: subscribed(props),
    rule: consumer.rule?.ruleName,
    externalRule:
      consumer.externalBus === undefined
        ? undefined
        : { name: externalRuleName(consumer, props), bus: consumer.externalBus },
    fairBy: props.queue?.fairBy,
    order: props.order && orderText(props.order),
    forwardsTo: props.forwardsTo && { kind: props.forwardsTo.kind, name: props.forwardsTo.name },
    queue: consumer.queue.queueUrl,
    deadLetterQueue: consumer.deadLetterQueue.queueUrl,
    undeliveredQueue: consumer.undeliveredQueue?.queueUrl,
    function: consumer.function.functionName,
    alias: consumer.alias?.aliasName,
    domainKeys: props.domainKeys,
    maxAttempts: settings.retry.maxAttempts,
    batchSize: settings.batchSize,
    slo: props.slo && {
      latencyMs: props.slo.latency.toMilliseconds(),
      percentile: props.slo.percentile ?? SLO_PERCENTILE,
    },
    inboxRetentionDays: settings.inboxRetention.toDays(),
    inboxSince: inboxSince(props.movedFrom),
    inbox: inboxEngine(consumer.function),
    schema: SCHEMA,
  });
  directoryEntry(consumer, consumerEntryName(table, props.name), entry);
}
