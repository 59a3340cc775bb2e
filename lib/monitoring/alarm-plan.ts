import { ArnFormat, Stack } from 'aws-cdk-lib';
import { Alarm, ComparisonOperator, type IMetric, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import type { ITopic } from 'aws-cdk-lib/aws-sns';
import type { Construct, IConstruct } from 'constructs';
import type { PropNames } from '../../lambdas/runtime/base/given-names.ts';
import type { EFFECTS_IN_DOUBT, UNSTABLE_EFFECTS } from '../../lambdas/runtime/consume/claimed-effects.ts';
import type { FENCE_LOST } from '../../lambdas/runtime/consume/message-outcome.ts';
import { addToPolicyOf } from '../checks/granted.ts';

/** `page`: action required now. `ticket`: action required on the next working day. */
export type AlarmSeverity = 'page' | 'ticket';

/** The topics that alarms notify. Subscribe people or a paging service to them. */
export interface AlarmTopics {
  /** Receives alarms that need action now, at any hour. */
  readonly page: ITopic;
  /** Receives alarms that need action on the next working day. */
  readonly ticket: ITopic;
}

/** The names of {@link AlarmTopics}. */
export const TOPIC_NAMES: PropNames<AlarmTopics> = { page: 'required', ticket: 'required' };

/** Headings of docs/operating.md that alarms link to, as GitHub anchors. */
export const RUNBOOK_ANCHORS = [
  'when-you-are-paged',
  'events-unpublished',
  'dead-event',
  'events-with-an-undeclared-source',
  'stream-batch-discarded',
  'stream-relay-misses-events',
  'eventbridge-calls-failing',
  'relay-function-failing',
  'functions-throttled',
  'table-throttled',
  'producer-clock-skew',
  'event-lost-on-the-way-to-a-consumer',
  'event-undelivered',
  'dead-letter-about-to-expire',
  'dead-letters-unresolved-or-increasing',
  'dead-letter-queue-unreadable',
  'slo-missed-or-consumer-behind',
  'consumer-stalled',
  'attempts-failing',
  'events-out-of-order',
  'message-in-the-dead-letter-queue',
  'consumer-cannot-reach-the-table',
  'write-refused-by-the-fencing-token',
  'unstable-effect-name',
  'effect-in-doubt',
  'events-missing-or-duplicated',
  'unreadable-rows',
  'audit-not-running',
  'heartbeat-late-or-not-sent',
] as const;

/** One heading of docs/operating.md. */
type RunbookAnchor = (typeof RUNBOOK_ANCHORS)[number];

/** The text of an alarm's notification. */
export interface AlarmText {
  readonly anchor: RunbookAnchor;
  /** One sentence: what happened. */
  readonly what: string;
  /** The command to run first: a `mailroom` command without the leading `mailroom`, or a search of a log. */
  readonly run: string | LogSearch;
}

/** A search for the log lines of the last day that contain a term. */
interface LogSearch {
  readonly logGroupName: string;
  /** The code of an error, or a field of the line. */
  readonly term: typeof EFFECTS_IN_DOUBT | typeof FENCE_LOST | typeof UNSTABLE_EFFECTS | 'differenceMs';
}

/** The definition of one alarm. */
export interface AlarmPlan extends AlarmText {
  readonly id: string;
  readonly severity: AlarmSeverity;
  readonly metric: IMetric;
  /** The alarm fires above this value, or below it if {@link AlarmPlan.below} is set. */
  readonly threshold: number;
  /** @default false */
  readonly below?: boolean;
  /** The number of periods that must breach. @default 1 */
  readonly breaches?: number;
  /** The number of most recent periods considered. @default the same as `breaches` */
  readonly among?: number;
  /** The treatment of a period without data. @default not breaching: most counters are only sent when they count something */
  readonly missing?: TreatMissingData;
}

/** The Mailroom and the runbook that an alarm's text refers to. */
export interface AlarmPlace {
  readonly mailroom: IConstruct;
  /** The URL of the runbook, without an anchor. */
  readonly runbook: string;
}

/** Creates an alarm without an action. */
export function deliveryAlarm(scope: Construct, place: AlarmPlace, plan: AlarmPlan): Alarm {
  const breaches = plan.breaches ?? 1;
  return new Alarm(scope, plan.id, {
    alarmDescription: alarmDescription(scope, place, plan),
    metric: plan.metric,
    threshold: plan.threshold,
    comparisonOperator: plan.below
      ? ComparisonOperator.LESS_THAN_THRESHOLD
      : ComparisonOperator.GREATER_THAN_THRESHOLD,
    evaluationPeriods: plan.among ?? breaches,
    datapointsToAlarm: breaches,
    treatMissingData: plan.missing ?? TreatMissingData.NOT_BREACHING,
  });
}

/** Builds the three lines of an alarm: what happened, the first command, the runbook link. CloudWatch allows 1,024 characters. */
export function alarmDescription(
  scope: Construct,
  { mailroom, runbook }: AlarmPlace,
  text: AlarmText,
): string {
  const { region } = Stack.of(scope);
  const { stackName } = Stack.of(mailroom);
  const { what, run, anchor } = text;
  const command =
    typeof run === 'string'
      ? `npx cdk-mailroom ${run} --region ${region} --stack ${stackName}`
      : `aws logs tail ${run.logGroupName} --since 1d --filter-pattern ${run.term} --region ${region}`;
  const needs = typeof run === 'string' ? '' : ' The command needs AWS CLI v2.';
  return [what + needs, `Run first: ${command}`, `Then read: ${runbook}#${anchor}`].join('\n');
}

/** The option of a command that reads rows in a database, whose address is not in AWS. */
export const ON_DATABASE = ' --database "$DATABASE_URL"';

/**
 * A topic with its own policy (to enforce TLS, for example) accepts messages only from the principals it names, and an alarm
 * that may not publish fails silently.
 */
export function letAlarmsPublish(scope: Construct, topic: ITopic): void {
  const anyAlarm = Stack.of(scope).formatArn({
    service: 'cloudwatch',
    resource: 'alarm',
    resourceName: '*',
    arnFormat: ArnFormat.COLON_RESOURCE_NAME,
  });
  addToPolicyOf(
    scope,
    topic,
    topic.topicArn,
    'alarms reach it only if its policy allows that already, as the one that SNS gives a new topic does',
    new PolicyStatement({
      sid: 'AlarmsPublish',
      principals: [new ServicePrincipal('cloudwatch.amazonaws.com')],
      actions: ['sns:Publish'],
      resources: [topic.topicArn],
      conditions: { ArnLike: { 'aws:SourceArn': anyAlarm } },
    }),
  );
}
