import { type IWidget, Stats } from 'aws-cdk-lib/aws-cloudwatch';
import type { IInboxConsumer } from '../mailroom/consumer-interface.ts';
import type { ConsumerMetrics, DeliveryCounts } from './metrics.ts';
import { FROM_ZERO, graphs, named, namedIfAny, percentiles } from './widgets.ts';

/** A consumer and its metrics. */
export interface WatchedConsumer {
  readonly consumer: IInboxConsumer;
  readonly metrics: ConsumerMetrics;
  /** Absent unless an audit is scheduled. */
  readonly deliveries?: DeliveryCounts | undefined;
}

/** The widgets of one consumer: its messages, failures, latency and backlog. */
export function consumerRow({ consumer, metrics, deliveries }: WatchedConsumer): IWidget[] {
  const { slo, order } = consumer;
  return graphs([
    {
      title: 'Messages',
      left: [
        named(metrics.received, 'received'),
        named(metrics.processed, 'processed'),
        named(metrics.duplicate, 'duplicate'),
        named(metrics.leased, 'leased elsewhere'),
        ...(order === undefined ? [] : [named(metrics.superseded, 'superseded')]),
        ...(order?.mode === 'strict' ? [named(metrics.outOfOrder, 'put back to wait')] : []),
      ],
    },
    {
      title: 'Failures',
      left: [
        named(metrics.failed, 'failed'),
        named(metrics.rejected, 'rejected'),
        named(metrics.attemptsOverThree, 'attempts over 3'),
        named(metrics.tableFailures, 'table unreachable'),
        named(metrics.leasesExpired, 'leases expired'),
        named(metrics.fenceRefused, 'fence refused'),
        named(metrics.unstableEffects, 'unstable effects'),
        named(metrics.effectsInDoubt, 'effects in doubt'),
        named(metrics.errors, 'function errors'),
        named(metrics.throttles, 'throttles'),
        ...namedIfAny(metrics.failedInvocations, 'rule failures'),
        ...namedIfAny(metrics.lost, 'lost'),
      ],
    },
    {
      title: 'Commit to processed',
      left: percentiles(metrics.latency, slo?.percentile),
      leftAnnotations: slo === undefined ? [] : [{ value: slo.latency.toMilliseconds(), label: 'SLO' }],
    },
    {
      title: 'Backlog, maximum',
      left: [
        named(metrics.waiting.with({ statistic: Stats.MAXIMUM }), 'waiting'),
        named(metrics.inFlight, 'in flight'),
        ...namedIfAny(deliveries?.backlog, 'unprocessed, by the audit'),
        ...namedIfAny(deliveries?.overThreeAttempts, 'over 3 attempts'),
      ],
      right: [
        named(metrics.oldestMessage, 'oldest message, s'),
        ...namedIfAny(deliveries?.oldestUnprocessed, 'oldest unprocessed, ms'),
      ],
      rightYAxis: FROM_ZERO,
    },
  ]);
}
