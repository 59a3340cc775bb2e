import { Stack } from 'aws-cdk-lib';
import { Alarm, ComparisonOperator, type IMetric, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import type { Construct } from 'constructs';
import type { Mailroom } from './mailroom.ts';

/** Who is told: somebody now, or somebody on the next working day. */
export type AlarmSeverity = 'page' | 'ticket';

/** The headings of docs/operating.md that alarms link to, as GitHub makes anchors of them. */
export const RUNBOOK_ANCHORS = [
  'you-were-paged-start-here',
  'events-wait-unpublished',
  'a-dead-letter-is-about-to-expire',
  'something-has-been-dead-for-a-working-day',
  'an-event-was-lost-on-the-way-to-a-consumer',
  'the-audit-found-missing-or-doubled-events',
  'an-slo-is-missed',
  'a-consumer-is-stalled',
  'an-event-is-dead',
  'events-wait-with-an-undeclared-source',
  'the-stream-gave-up-on-a-batch',
  'an-event-was-not-delivered',
  'a-message-is-dead',
  'the-sweep-rescues-events',
  'the-stream-is-behind',
  'the-bus-fails',
  'the-relay-fails',
  'a-rule-fails',
  'messages-need-many-attempts',
  'a-consumer-cannot-reach-its-table',
  'a-fence-refused-a-write',
  'an-effect-has-no-stable-name',
  'functions-are-throttled',
  'the-table-is-throttled',
  'the-watch-is-blind',
  'clocks-differ',
  'the-audit-found-rows-that-cannot-be-read',
  'the-audit-is-silent',
] as const;

/** One heading of docs/operating.md. */
type RunbookAnchor = (typeof RUNBOOK_ANCHORS)[number];

/** What an alarm says to whom it wakes. */
export interface AlarmText {
  readonly anchor: RunbookAnchor;
  /** What happened, a sentence. */
  readonly what: string;
  /** What to run first: a command of `mailroom`, without its name. */
  readonly run: string;
}

/** One alarm before it is made. */
export interface AlarmPlan extends AlarmText {
  readonly id: string;
  readonly severity: AlarmSeverity;
  readonly metric: IMetric;
  /** It goes off above this; or below it, where {@link AlarmPlan.below} says so. */
  readonly threshold: number;
  /** @default false */
  readonly below?: boolean;
  /** How many periods of the metric must breach. @default 1 */
  readonly breaches?: number;
  /** Among how many of the last ones. @default as many as must breach */
  readonly among?: number;
  /** What a period without data means. @default it does not breach: most counters are sent only when they count */
  readonly missing?: TreatMissingData;
}

/** Where an alarm says to look. */
export interface AlarmPlace {
  readonly mailroom: Mailroom;
  /** The address of docs/operating.md. */
  readonly runbook: string;
}

/** Makes an alarm, without an action. */
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

/** What happened, what to run first, where to read on. CloudWatch takes 1,024 characters. */
export function alarmDescription(
  scope: Construct,
  { mailroom, runbook }: AlarmPlace,
  text: AlarmText,
): string {
  const { region } = Stack.of(scope);
  const { stackName } = Stack.of(mailroom);
  return [
    text.what,
    `Run first: npx mailroom ${text.run} --region ${region} --stack ${stackName}`,
    `Then read: ${runbook}#${text.anchor}`,
  ].join('\n');
}
