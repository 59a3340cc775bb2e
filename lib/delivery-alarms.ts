import { Names } from 'aws-cdk-lib';
import {
  Alarm,
  type AlarmBase,
  AlarmRule,
  AlarmState,
  CompositeAlarm,
  type Dashboard,
} from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { Construct } from 'constructs';
import { nameProblems, type PropNames } from '../lambdas/runtime/base/given-names.ts';
import { refuse, refuseNames } from './checks/refusal.ts';
import { logGroupNameOf } from './consumer/existing-function.ts';
import { acknowledge } from './functions/acknowledged-warnings.ts';
import type { IInboxConsumer } from './mailroom/consumer-interface.ts';
import { RUNBOOK_URL } from './mailroom/tags.ts';
import type { Mailroom } from './mailroom.ts';
import {
  type AlarmPlace,
  type AlarmPlan,
  type AlarmSeverity,
  type AlarmText,
  type AlarmTopics,
  alarmDescription,
  deliveryAlarm,
  letAlarmsPublish,
  TOPIC_NAMES,
} from './monitoring/alarm-plan.ts';
import { auditAlarms } from './monitoring/audit-alarms.ts';
import {
  consumerAlarms,
  failingConsumer,
  growingDeadLetters,
  sloAlarms,
  stalledConsumer,
} from './monitoring/consumer-alarms.ts';
import { DeliveryDashboard } from './monitoring/dashboard.ts';
import { heartbeatAlarms } from './monitoring/heartbeat-alarms.ts';
import {
  auditMetrics,
  consumerMetrics,
  deliveryCounts,
  heartbeatMetrics,
  relayMetrics,
} from './monitoring/metrics.ts';
import { relayAlarms } from './monitoring/relay-alarms.ts';
import {
  type AlarmThresholds,
  THRESHOLD_NAMES,
  thresholdProblems,
  withThresholds,
} from './monitoring/thresholds.ts';

/** Properties of {@link DeliveryAlarms}. */
export interface DeliveryAlarmsProps {
  /** The Mailroom to watch, with every consumer created so far. */
  readonly mailroom: Mailroom;
  /** The topics to notify. */
  readonly alarms: AlarmTopics;
  /** @default the default of each threshold */
  readonly thresholds?: AlarmThresholds;
  /**
   * The address of the runbook that alarms link to, without an anchor: your own copy of docs/operating.md, with its headings.
   *
   * @default the page of this version in Mailroom's repository
   */
  readonly runbook?: string;
  /** Creates a dashboard. @default true */
  readonly dashboard?: boolean;
  /**
   * Combines all page alarms into one composite alarm, so that one incident pages once: the individual page alarms have no
   * action, and one that joins an ongoing incident does not page again. Set it to `false` for engines without composite alarms
   * and metric math: each page alarm then pages on its own, a consumer's SLO is watched over the long window only, only rejected
   * messages count as growth of dead letters, and a consumer that is stalled or fails every attempt is not reported.
   *
   * @default true
   */
  readonly composite?: boolean;
}

/**
 * A composite alarm's rule is limited to 10,240 characters and 100 alarms (CloudWatch API, PutCompositeAlarm). An alarm's name
 * may have 255 characters, so it takes up to 326 in the rule.
 */
const COMPOSITE_ALARMS_MAX = 30;

const PART_OF_COMPOSITE = {
  CloudWatchAlarmAction: 'A composite alarm has the action, so that one incident pages once.',
};

const PAGED: AlarmText = {
  anchor: 'when-you-are-paged',
  what: 'Events are late, lost, duplicated or about to be lost: at least one page alarm is in the ALARM state.',
  run: 'status',
};

const NAMES: PropNames<DeliveryAlarmsProps> = {
  mailroom: 'required',
  alarms: 'required',
  thresholds: 'optional',
  runbook: 'optional',
  dashboard: 'optional',
  composite: 'optional',
};

/**
 * One alarm per way in which delivery can fail, each with the command to run first and a runbook link, and a dashboard. Covers
 * every consumer of the Mailroom, so create it after all of them, ideally in its own stack.
 *
 * @throws `BAD_SETTINGS` if a threshold cannot be measured
 *
 * @example
 * ```ts
 * new DeliveryAlarms(this, 'Alarms', {
 *   mailroom,
 *   alarms: { page: new Topic(this, 'Page'), ticket: new Topic(this, 'Ticket') },
 *   runbook: 'https://wiki.example.com/mailroom',
 * });
 * ```
 */
export class DeliveryAlarms extends Construct {
  /** Absent if `dashboard` is `false`. */
  readonly dashboard?: Dashboard;
  private readonly place: AlarmPlace;
  private readonly topics: AlarmTopics;
  private readonly composite: boolean;
  private readonly alarms: Record<AlarmSeverity, AlarmBase[]> = { page: [], ticket: [] };

  constructor(scope: Construct, id: string, props: DeliveryAlarmsProps) {
    super(scope, id);
    refuseNames(`The DeliveryAlarms ${this.node.path}`, props, NAMES);
    refuse(`The DeliveryAlarms ${this.node.path}`, [
      ...nameProblems(props.alarms, TOPIC_NAMES, 'alarms.'),
      ...nameProblems(props.thresholds, THRESHOLD_NAMES, 'thresholds.'),
    ]);
    const { mailroom, alarms } = props;
    const thresholds = withThresholds(props.thresholds);
    refuse(`The DeliveryAlarms ${this.node.path}`, thresholdProblems(thresholds));
    this.place = { mailroom, runbook: props.runbook ?? RUNBOOK_URL };
    this.topics = alarms;
    this.composite = props.composite ?? true;
    for (const topic of new Set([alarms.page, alarms.ticket])) letAlarmsPublish(this, topic);

    const relay = relayMetrics(mailroom);
    const streamLogGroup = logGroupNameOf(mailroom.relay.streamFunction);
    this.addAll(this, relayAlarms(relay, thresholds, streamLogGroup));
    const audit = mailroom.audit && auditMetrics(mailroom, mailroom.audit);
    if (mailroom.audit && audit) this.addAll(this, auditAlarms(mailroom.audit, audit));
    const heartbeat = mailroom.heartbeat && heartbeatMetrics(mailroom, mailroom.heartbeat);
    if (heartbeat) this.addAll(this, heartbeatAlarms(heartbeat));
    const consumers = mailroom.consumers.map((consumer) => ({
      consumer,
      metrics: consumerMetrics(mailroom, consumer),
      deliveries: mailroom.audit && deliveryCounts(mailroom, mailroom.audit, consumer),
    }));
    for (const { consumer, metrics } of consumers) {
      const own = new Construct(this, consumer.name);
      this.addAll(own, consumerAlarms(consumer, metrics, thresholds));
      this.addAll(own, [growingDeadLetters(consumer, metrics, thresholds, this.composite)]);
      if (this.composite)
        this.addAll(own, [
          stalledConsumer(consumer, metrics, thresholds, heartbeat?.sent),
          failingConsumer(consumer, metrics, thresholds),
        ]);
      this.addSlo(own, sloAlarms(consumer, metrics));
    }
    const combined = this.composite ? [this.pageOnce()] : [];
    if (props.dashboard ?? true) {
      this.dashboard = new DeliveryDashboard(this, 'Dashboard', {
        relay,
        audit,
        heartbeat,
        consumers,
        alarms: [...combined, ...this.alarms.page, ...this.alarms.ticket],
      });
    }
    this.refuseLaterConsumers(mailroom);
  }

  private addAll(scope: Construct, plans: readonly AlarmPlan[]): void {
    for (const plan of plans) this.addAlarm(deliveryAlarm(scope, this.place, plan), plan.severity);
  }

  /** Alarms only if both windows breach; without composite alarms, on the long window alone. */
  private addSlo(scope: Construct, plans: readonly AlarmPlan[]): void {
    const measured = this.composite ? plans : plans.slice(-1);
    const windows = measured.map((plan) => ({ plan, alarm: deliveryAlarm(scope, this.place, plan) }));
    if (this.composite) for (const { alarm } of windows) acknowledge(alarm, PART_OF_COMPOSITE);
    const long = windows.at(-1);
    if (long === undefined) return;
    const { plan } = long;
    if (!this.composite) {
      this.addAlarm(long.alarm, plan.severity);
      return;
    }
    const both = new CompositeAlarm(scope, 'Slow', {
      compositeAlarmName: compositeName(scope, 'Slow'),
      alarmDescription: alarmDescription(scope, this.place, plan),
      alarmRule: AlarmRule.allOf(...windows.map(({ alarm }) => AlarmRule.fromAlarm(alarm, AlarmState.ALARM))),
    });
    this.addAlarm(both, plan.severity);
  }

  private addAlarm(alarm: AlarmBase, severity: AlarmSeverity): void {
    this.alarms[severity].push(alarm);
    if (severity === 'page' && this.composite) {
      if (alarm instanceof Alarm) acknowledge(alarm, PART_OF_COMPOSITE);
      return;
    }
    alarm.addAlarmAction(new SnsAction(this.topics[severity]));
  }

  /** Combines all page alarms into one. It sends no OK notification: a lost event stays lost after its alarm ends. */
  private pageOnce(): CompositeAlarm {
    const { page } = this.alarms;
    const groups = Array.from({ length: Math.ceil(page.length / COMPOSITE_ALARMS_MAX) }, (_, index) =>
      page.slice(index * COMPOSITE_ALARMS_MAX, (index + 1) * COMPOSITE_ALARMS_MAX),
    );
    const members =
      groups.length === 1 ? page : groups.map((group, index) => this.anyOf(`Pages${index + 1}`, group));
    const composite = this.anyOf('Page', members);
    composite.addAlarmAction(new SnsAction(this.topics.page));
    return composite;
  }

  private anyOf(id: string, alarms: readonly AlarmBase[]): CompositeAlarm {
    return new CompositeAlarm(this, id, {
      compositeAlarmName: compositeName(this, id),
      alarmDescription: alarmDescription(this, this.place, PAGED),
      alarmRule: AlarmRule.anyOf(...alarms.map((alarm) => AlarmRule.fromAlarm(alarm, AlarmState.ALARM))),
    });
  }

  private refuseLaterConsumers(mailroom: Mailroom): void {
    const covered = new Set<IInboxConsumer>(mailroom.consumers);
    this.node.addValidation({
      validate: () =>
        mailroom.consumers
          .filter((consumer) => !covered.has(consumer))
          .map(
            ({ node }) =>
              `The consumer ${node.path} was created after the alarms ${this.node.path}, so it has no ` +
              'alarms. Create DeliveryAlarms after every consumer of its Mailroom.',
          ),
    });
  }
}

/** A composite alarm needs a name, and the CDK's default name is the same in every stage of an account. */
function compositeName(scope: Construct, id: string): string {
  return `${Names.uniqueResourceName(scope, { maxLength: 200, separator: '-', allowedSpecialCharacters: '-' })}-${id}`;
}
