import { ArnFormat, Names, Stack } from 'aws-cdk-lib';
import {
  Alarm,
  type AlarmBase,
  AlarmRule,
  AlarmState,
  CompositeAlarm,
  type Dashboard,
} from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import type { ITopic } from 'aws-cdk-lib/aws-sns';
import { Construct } from 'constructs';
import { acknowledge } from './acknowledgements.ts';
import type { IInboxConsumer } from './consumer.ts';
import {
  type AlarmPlace,
  type AlarmPlan,
  type AlarmSeverity,
  type AlarmText,
  alarmDescription,
  deliveryAlarm,
} from './delivery-alarm.ts';
import { consumerAlarms, sloAlarms, stalledConsumer } from './delivery-consumer-alarms.ts';
import { DeliveryDashboard } from './delivery-dashboard.ts';
import { auditMetrics, consumerMetrics, relayMetrics } from './delivery-metrics.ts';
import { auditAlarms, relayAlarms } from './delivery-relay-alarms.ts';
import { type AlarmThresholds, thresholdProblems, withThresholds } from './delivery-thresholds.ts';
import type { Mailroom } from './mailroom.ts';
import { refuse } from './refusal.ts';

/** Who is told what. Subscribe people, or a paging service, to the topics. */
export interface AlarmTopics {
  /** Gets what somebody must look at now, at any hour. */
  readonly page: ITopic;
  /** Gets what somebody must look at on the next working day. */
  readonly ticket: ITopic;
}

/** What {@link DeliveryAlarms} needs, and what may be chosen about them. */
export interface DeliveryAlarmsProps {
  /** The Mailroom to watch, with every consumer that it has by then. */
  readonly mailroom: Mailroom;
  /** Where the alarms go. */
  readonly alarms: AlarmTopics;
  /** @default as said at each threshold */
  readonly thresholds?: AlarmThresholds;
  /** The address of docs/operating.md for those who get an alarm. @default 'docs/operating.md' */
  readonly runbook?: string;
  /** Whether there is a dashboard. @default true */
  readonly dashboard?: boolean;
  /**
   * Whether one composite alarm tells of all pages, so that one incident is one page: the page alarms then have no action
   * of their own, and one that joins while another lasts does not page again. Without it, for engines that have neither
   * composite alarms nor metric math, each page alarm pages, a consumer's SLO is watched over the long window alone,
   * and a stalled consumer is not reported.
   *
   * @default true
   */
  readonly composite?: boolean;
}

/**
 * A composite alarm's rule has at most 10,240 characters, and 100 alarms (CloudWatch API, PutCompositeAlarm). An alarm's name
 * may have 255, so its place in the rule up to 326.
 */
const COMPOSITE_ALARMS_MAX = 30;

const PART_OF_COMPOSITE = {
  CloudWatchAlarmAction:
    'It is part of a composite alarm, which has the action, so that one incident pages once.',
};

const PAGED: AlarmText = {
  anchor: 'you-were-paged-start-here',
  what: 'Events are late, lost or about to be: at least one of the page alarms is in alarm.',
  run: 'status',
};

/**
 * An alarm for each way in which delivery can fail, each with the command to run first and the link of what to do, and a
 * dashboard. Covers every consumer of the Mailroom, and so must be made after all of them, best in a stack of its own.
 *
 * @throws `BAD_SETTINGS` when a threshold cannot be measured
 *
 * @example
 * ```ts
 * new DeliveryAlarms(this, 'Alarms', {
 *   mailroom,
 *   alarms: { page: new Topic(this, 'Page'), ticket: new Topic(this, 'Ticket') },
 *   runbook: 'https://github.com/acme/shop/blob/main/docs/operating.md',
 * });
 * ```
 */
export class DeliveryAlarms extends Construct {
  /** Absent where there is none. */
  readonly dashboard?: Dashboard;
  private readonly place: AlarmPlace;
  private readonly topics: AlarmTopics;
  private readonly composite: boolean;
  private readonly alarms: Record<AlarmSeverity, AlarmBase[]> = { page: [], ticket: [] };

  constructor(scope: Construct, id: string, props: DeliveryAlarmsProps) {
    super(scope, id);
    const { mailroom, alarms } = props;
    const thresholds = withThresholds(props.thresholds);
    refuse(`The alarms ${this.node.path}`, thresholdProblems(thresholds));
    this.place = { mailroom, runbook: props.runbook ?? 'docs/operating.md' };
    this.topics = alarms;
    this.composite = props.composite ?? true;
    for (const topic of new Set([alarms.page, alarms.ticket])) this.letAlarmsPublish(topic);

    const relay = relayMetrics(mailroom);
    this.addAll(this, relayAlarms(relay, thresholds));
    const audit = mailroom.audit && auditMetrics(mailroom, mailroom.audit);
    if (mailroom.audit && audit) this.addAll(this, auditAlarms(mailroom.audit, audit));
    const consumers = mailroom.consumers.map((consumer) => ({
      consumer,
      metrics: consumerMetrics(mailroom, consumer),
    }));
    for (const { consumer, metrics } of consumers) {
      const own = new Construct(this, consumer.name);
      this.addAll(own, consumerAlarms(consumer, metrics, thresholds));
      if (this.composite) this.addAll(own, [stalledConsumer(consumer, metrics, thresholds)]);
      this.addSlo(own, sloAlarms(consumer, metrics));
    }
    const told = this.composite ? [this.pageOnce()] : [];
    if (props.dashboard ?? true) {
      this.dashboard = new DeliveryDashboard(this, 'Dashboard', {
        relay,
        audit,
        consumers,
        alarms: [...told, ...this.alarms.page, ...this.alarms.ticket],
      });
    }
    this.refuseLaterConsumers(mailroom);
  }

  private addAll(scope: Construct, plans: readonly AlarmPlan[]): void {
    for (const plan of plans) this.tell(deliveryAlarm(scope, this.place, plan), plan.severity);
  }

  /** Only both windows together tell; where there is no composite alarm, the long one does. */
  private addSlo(scope: Construct, plans: readonly AlarmPlan[]): void {
    const windows = plans.map((plan) => ({ plan, alarm: deliveryAlarm(scope, this.place, plan) }));
    if (this.composite) for (const { alarm } of windows) acknowledge(alarm, PART_OF_COMPOSITE);
    const long = windows.at(-1);
    if (long === undefined) return;
    const { plan } = long;
    if (!this.composite) {
      this.tell(long.alarm, plan.severity);
      return;
    }
    const both = new CompositeAlarm(scope, 'Slow', {
      compositeAlarmName: compositeName(scope, 'Slow'),
      alarmDescription: alarmDescription(scope, this.place, plan),
      alarmRule: AlarmRule.allOf(...windows.map(({ alarm }) => AlarmRule.fromAlarm(alarm, AlarmState.ALARM))),
    });
    this.tell(both, plan.severity);
  }

  private tell(alarm: AlarmBase, severity: AlarmSeverity): void {
    this.alarms[severity].push(alarm);
    if (severity === 'page' && this.composite) {
      if (alarm instanceof Alarm) acknowledge(alarm, PART_OF_COMPOSITE);
      return;
    }
    alarm.addAlarmAction(new SnsAction(this.topics[severity]));
  }

  /** One alarm over all pages. It does not tell when it is quiet again: a lost event is lost when its alarm is over, too. */
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

  /**
   * A topic with a policy of its own (one that demands TLS, say) lets nobody publish whom it does not name, and an alarm
   * that may not publish fails without a word.
   */
  private letAlarmsPublish(topic: ITopic): void {
    const anyAlarm = Stack.of(this).formatArn({
      service: 'cloudwatch',
      resource: 'alarm',
      resourceName: '*',
      arnFormat: ArnFormat.COLON_RESOURCE_NAME,
    });
    topic.addToResourcePolicy(
      new PolicyStatement({
        sid: 'AlarmsPublish',
        principals: [new ServicePrincipal('cloudwatch.amazonaws.com')],
        actions: ['sns:Publish'],
        resources: [topic.topicArn],
        conditions: { ArnLike: { 'aws:SourceArn': anyAlarm } },
      }),
    );
  }

  private refuseLaterConsumers(mailroom: Mailroom): void {
    const covered = new Set<IInboxConsumer>(mailroom.consumers);
    this.node.addValidation({
      validate: () =>
        mailroom.consumers
          .filter((consumer) => !covered.has(consumer))
          .map(
            ({ node }) =>
              `The consumer ${node.path} was made after the alarms ${this.node.path}, so nobody would be told when it ` +
              'fails. Make DeliveryAlarms after every consumer of its Mailroom.',
          ),
    });
  }
}

/** A composite alarm must have a name, and the one that the CDK would give is the same in every stage of an account. */
function compositeName(scope: Construct, id: string): string {
  return `${Names.uniqueResourceName(scope, { maxLength: 200, separator: '-', allowedSpecialCharacters: '-' })}-${id}`;
}
