import type { PartProblem } from './check.ts';

/** The API call that usually causes a problem, by its name in CloudTrail. The others are no change, or no single one. */
const CHANGED_BY: Partial<Readonly<Record<PartProblem['problem'], string>>> = {
  'no-bus': 'DeleteEventBus',
  'no-rule': 'DeleteRule',
  'rule-disabled': 'DisableRule',
  pattern: 'PutRule',
  target: 'RemoveTargets',
  'no-dead-letter-queue': 'PutTargets',
  'mapping-disabled': 'UpdateEventSourceMapping20150331',
  'mapping-filter': 'UpdateEventSourceMapping20150331',
  'no-item-failures': 'UpdateEventSourceMapping20150331',
  'batch-size': 'UpdateEventSourceMapping20150331',
  'no-bisect': 'UpdateEventSourceMapping20150331',
  'no-failure-destination': 'UpdateEventSourceMapping20150331',
  'endless-retries': 'UpdateEventSourceMapping20150331',
  'no-max-concurrency': 'UpdateEventSourceMapping20150331',
  'no-mapping': 'DeleteEventSourceMapping20150331',
  'concurrency-zero': 'PutFunctionConcurrency20171031',
  'no-function': 'DeleteFunction20150331',
  settings: 'UpdateFunctionConfiguration20150331v2',
  'no-queue': 'DeleteQueue',
  visibility: 'SetQueueAttributes',
  redrive: 'SetQueueAttributes',
  retention: 'SetQueueAttributes',
  'message-size': 'SetQueueAttributes',
  delay: 'SetQueueAttributes',
  'queue-policy': 'SetQueueAttributes',
  'stream-off': 'UpdateTable',
  'stream-view': 'UpdateTable',
  'deletion-protection': 'UpdateTable',
  'ttl-off': 'UpdateTimeToLive',
  'table-policy': 'PutResourcePolicy',
  'recovery-off': 'UpdateContinuousBackups',
  'no-alarms': 'DeleteAlarms',
  'alarm-actions-disabled': 'DisableAlarmActions',
};

/**
 * The words of the command that lists the last such changes in the region, with the resource and who made them; empty if no single
 * call causes the problem. It looks for the call: CloudTrail stores the name of every call, but the resource only of some services.
 */
export function whoChanged({ problem }: Pick<PartProblem, 'problem'>): readonly string[] {
  const call = CHANGED_BY[problem];
  if (call === undefined) return [];
  const lookup = ['cloudtrail', 'lookup-events', '--lookup-attributes'];
  return ['aws', ...lookup, `AttributeKey=EventName,AttributeValue=${call}`, '--max-results', '5'];
}
