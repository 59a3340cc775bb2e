const UPDATE_MAPPING = 'UpdateEventSourceMapping20150331';

/**
 * The kinds of problems of a part, each with the API call that usually causes it, by its name in CloudTrail. `null`: it is not a
 * change, or several calls can cause it.
 */
const CAUSED_BY = {
  // Events do not pass the part.
  'no-bus': 'DeleteEventBus',
  'no-rule': 'DeleteRule',
  'rule-disabled': 'DisableRule',
  pattern: 'PutRule',
  target: 'RemoveTargets',
  'target-input': 'PutTargets',
  'mapping-disabled': UPDATE_MAPPING,
  'mapping-filter': UPDATE_MAPPING,
  paused: null,
  'pause-expires': null,
  'no-mapping': 'DeleteEventSourceMapping20150331',
  'concurrency-zero': 'PutFunctionConcurrency20171031',
  'no-function': 'DeleteFunction20150331',
  'invocations-fail': null,
  'stream-off': 'UpdateTable',
  'no-queue': 'DeleteQueue',
  'no-entry': null,
  'bad-entry': 'PutParameter',
  'sweep-silent': null,
  // A resource is not as its stack declares it: the call depends on the member.
  differs: null,
  // The same, found by CloudFormation's drift detection.
  drifted: null,
  // Relations between resources, and an existing queue.
  visibility: 'SetQueueAttributes',
  redrive: 'SetQueueAttributes',
  retention: 'SetQueueAttributes',
  'function-failed': null,
  settings: 'UpdateFunctionConfiguration20150331v2',
  'older-version': null,
  'newer-version': null,
  'no-alarms': 'DeleteAlarms',
  'alarm-actions-disabled': 'DisableAlarmActions',
  'alarm-without-action': null,
  'alarm-firing': null,
  'foreign-mapping': 'CreateEventSourceMapping20150331',
  'foreign-rule': 'PutTargets',
  'forward-disabled': 'DisableRule',
  'forward-undelivered': null,
  'key-disabled': 'DisableKey',
  'key-deletion': 'ScheduleKeyDeletion',
  'concurrency-low': null,
  'concurrency-full': null,
  clock: null,
  role: null,
  producer: 'UpdateFunctionConfiguration20150331v2',
  // Databases.
  'pending-stuck': null,
  'pending-locked': null,
  vacuum: null,
  'old-snapshot': null,
  'slot-lag': null,
  'slot-lost': null,
  'capture-behind': null,
  'capture-setting': null,
  'slot-unlimited': null,
  'foreign-object': null,
  'login-absent': null,
  'login-timeouts': null,
  'row-security': null,
  'database-setting': null,
} as const;

/** A kind of problem of a part. */
export type ProblemKind = keyof typeof CAUSED_BY;

/** The members of a problem that tell whether a person may have meant it. */
interface SeenProblem {
  readonly part: string;
  readonly problem: ProblemKind;
  /** The path of the member that differs. */
  readonly member?: string | undefined;
}

/** A sentence without its full stop, for a problem that a person may have caused on purpose; `undefined` for any other. */
export function askFirst(found: SeenProblem): string | undefined {
  if (isStop(found)) return 'It may have been stopped on purpose: ask first';
  const [name = ''] = (found.member ?? '').split('.').slice(-1);
  const isMeant = DELIBERATE.has(found.problem) || POLICIES.has(name);
  return isMeant ? 'It may have been changed on purpose: ask first' : undefined;
}

/** Decisions of others that lose no event within a day: a key that security has locked, alarms that are muted, a rule of another team. */
const DELIBERATE: ReadonlySet<ProblemKind> = new Set<ProblemKind>([
  'key-disabled',
  'key-deletion',
  'alarm-actions-disabled',
  'foreign-rule',
]);

/** The members with the statements of a policy: an additional one may be a guard that a security team has added. */
const POLICIES: ReadonlySet<string> = new Set(['Policy', 'PolicyDocument', 'Statement']);

/**
 * A function that an operator may have stopped on purpose, or the schedule of the sweep. Messages and events wait; the disabled rule of a
 * consumer is repaired at once, because it loses events.
 */
export function isStop({ part, problem, member = '' }: SeenProblem): boolean {
  if (problem === 'rule-disabled') return part === 'sweep';
  return problem === 'mapping-disabled' || problem === 'concurrency-zero' || STOPPING.has(member);
}

/** The members of a mapping and of a function by which a person stops it. */
const STOPPING: ReadonlySet<string> = new Set(['Enabled', 'ReservedConcurrentExecutions']);

/**
 * The words of the command that lists the last such changes in the region, with the resource and who made them; empty if no single
 * call causes the problem. It looks for the call: CloudTrail stores the name of every call, but the resource only of some services.
 */
export function whoChanged({
  problem,
  call = CAUSED_BY[problem],
}: {
  readonly problem: ProblemKind;
  readonly call?: string | null | undefined;
}): readonly string[] {
  if (call === null) return [];
  const lookup = ['cloudtrail', 'lookup-events', '--lookup-attributes'];
  return ['aws', ...lookup, `AttributeKey=EventName,AttributeValue=${call}`, '--max-results', '5'];
}
