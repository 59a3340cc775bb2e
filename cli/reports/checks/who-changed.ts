import type { PartProblem } from './check.ts';

/** The problems that an API call usually causes, by its name in CloudTrail. The others are not a change, or not a single one. */
const CAUSED_BY: Readonly<Record<string, readonly PartProblem['problem'][]>> = {
  DeleteEventBus: ['no-bus'],
  DeleteRule: ['no-rule'],
  DisableRule: ['rule-disabled'],
  PutRule: ['pattern'],
  PutTargets: ['no-dead-letter-queue'],
  RemoveTargets: ['target'],
  UpdateEventSourceMapping20150331: [
    'mapping-disabled',
    'mapping-filter',
    'no-item-failures',
    'batch-size',
    'no-bisect',
    'no-failure-destination',
    'endless-retries',
    'no-max-concurrency',
  ],
  DeleteEventSourceMapping20150331: ['no-mapping'],
  PutFunctionConcurrency20171031: ['concurrency-zero'],
  DeleteFunction20150331: ['no-function'],
  UpdateFunctionConfiguration20150331v2: ['settings'],
  DeleteQueue: ['no-queue'],
  SetQueueAttributes: ['visibility', 'redrive', 'retention', 'message-size', 'delay', 'queue-policy'],
  UpdateTable: ['stream-off', 'stream-view', 'deletion-protection'],
  UpdateTimeToLive: ['ttl-off'],
  PutResourcePolicy: ['table-policy'],
  UpdateContinuousBackups: ['recovery-off'],
  DeleteAlarms: ['no-alarms'],
  DisableAlarmActions: ['alarm-actions-disabled'],
};

/**
 * The words of the command that lists the last such changes in the region, with the resource and who made them; empty if no single
 * call causes the problem. It looks for the call: CloudTrail stores the name of every call, but the resource only of some services.
 */
export function whoChanged({ problem }: Pick<PartProblem, 'problem'>): readonly string[] {
  const [call] = Object.entries(CAUSED_BY).find(([, problems]) => problems.includes(problem)) ?? [];
  if (call === undefined) return [];
  const lookup = ['cloudtrail', 'lookup-events', '--lookup-attributes'];
  return ['aws', ...lookup, `AttributeKey=EventName,AttributeValue=${call}`, '--max-results', '5'];
}
