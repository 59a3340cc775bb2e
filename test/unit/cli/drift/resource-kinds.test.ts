import { describe, expect, test } from 'vitest';
import type { DeclaredResource } from '../../../../cli/deployment/declared-resources.ts';
import { READERS } from '../../../../cli/deployment/deployed-properties.ts';
import { whoChanged } from '../../../../cli/reports/checks/problem-kinds.ts';
import { compareResource } from '../../../../cli/reports/drift/compare.ts';
import { differenceProblem } from '../../../../cli/reports/drift/difference-problem.ts';
import { KINDS } from '../../../../cli/reports/drift/resource-kinds.ts';
import { policyOf, samples } from './sample-resources.ts';

type Properties = DeclaredResource['properties'];

function compared(resource: DeclaredResource, properties: Properties | undefined) {
  const kind = KINDS[resource.type];
  const members = READERS[resource.type]?.members;
  if (kind === undefined || members === undefined) throw new Error(`${resource.type} is not compared`);
  return compareResource(resource, { properties, members }, kind);
}

/** Sets the member at a path; `*` is the first item. */
function withMember(value: unknown, [name = '', ...rest]: readonly string[], changed: unknown): unknown {
  if (Array.isArray(value)) {
    const [first, ...others] = value;
    if (name === '*' && rest.length === 0) return [first, changed, ...others];
    return [rest.length === 0 ? changed : withMember(first, rest, changed), ...others];
  }
  const object = { ...(value as Properties) };
  const key = name === '*' ? 'ADDED' : name;
  return { ...object, [key]: rest.length === 0 ? changed : withMember(object[key], rest, changed) };
}

/** The changes of members whose values are not a text or number. */
const CHANGES: Readonly<Record<string, unknown>> = {
  'Targets.*': { Id: 'Other', Arn: 'arn:aws:sqs:eu-west-1:111122223333:others' },
  'Targets.*.DeadLetterConfig': undefined,
  'Replicas.*': { Region: 'eu-central-1', TableClass: 'STANDARD' },
  TimeToLiveSpecification: undefined,
  StreamSpecification: undefined,
  ScalingConfig: undefined,
  RedrivePolicy: {
    deadLetterTargetArn: 'arn:aws:sqs:eu-west-1:111122223333:worker-queue-dead',
    maxReceiveCount: 3,
  },
  RedriveAllowPolicy: undefined,
  FilterCriteria: { Filters: [{ Pattern: '{"body":{"n":[1]}}' }] },
  PolicyDocument: policyOf('SendMessage', 'ReceiveMessage'),
  Policy: policyOf('Other'),
  'Replicas.*.ResourcePolicy.PolicyDocument': policyOf('PutItem'),
  State: 'DISABLED',
  Enabled: false,
  MemorySize: 256,
  ReservedConcurrentExecutions: 0,
  ActionsEnabled: false,
  AlarmActions: undefined,
  BisectBatchOnFunctionError: true,
  FifoQueue: true,
  'SSESpecification.SSEEnabled': false,
  ContentBasedDeduplication: true,
  'Replicas.*.DeletionProtectionEnabled': false,
  'Replicas.*.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled': false,
};

/** Another value of a member than declared. */
function changeOf({ type }: DeclaredResource, pattern: string): unknown {
  if (pattern in CHANGES) return CHANGES[pattern];
  return typeof KINDS[type]?.members[pattern]?.default === 'number' ? 7 : 'other';
}

/** The path of the member that a pattern of a kind stands for in the samples. */
function pathOf(pattern: string): string {
  if (pattern === 'Targets.*') return 'Targets.Other';
  if (pattern === 'Replicas.*') return 'Replicas.eu-central-1';
  return pattern
    .replace('Targets.*', 'Targets.Target0')
    .replace('Replicas.*', 'Replicas.eu-west-1')
    .replace('*', 'ADDED');
}

const members = samples.flatMap((resource) =>
  Object.keys(KINDS[resource.type]?.members ?? {}).map((pattern) => ({ resource, pattern })),
);

describe('the table of kinds', () => {
  test('has a sample of each kind, and each kind has a reader', () => {
    expect(samples.map(({ type }) => type).sort()).toEqual(Object.keys(KINDS).sort());
    expect(Object.keys(READERS)).toEqual(expect.arrayContaining(Object.keys(KINDS)));
  });

  test('compares only members that are read', () => {
    for (const [type, kind] of Object.entries(KINDS)) {
      const roots = Object.keys(kind.members).map((path) => path.split('.')[0]);
      expect(READERS[type]?.members, type).toEqual(expect.arrayContaining(roots));
    }
  });

  test.each(samples)('finds no difference of a $type from itself', (resource) => {
    const { differences, allowed } = compared(resource, resource.properties);
    expect({ differences, allowed }).toEqual({ differences: [], allowed: [] });
  });

  test.each(members)(
    'finds exactly one difference of $resource.type if its $pattern is changed',
    ({ resource, pattern }) => {
      const changed = changeOf(resource, pattern);
      const deployed = withMember(resource.properties, pattern.split('.'), changed) as Properties;
      const { differences, allowed } = compared(resource, deployed);
      expect([...differences, ...allowed].map(({ member }) => member)).toEqual([pathOf(pattern)]);
    },
  );

  test('says what each difference means, who made it, and what sets it back', async () => {
    const lines = members.map(({ resource, pattern }) => {
      const changed = changeOf(resource, pattern);
      const deployed = withMember(resource.properties, pattern.split('.'), changed) as Properties;
      const { differences, allowed } = compared(resource, deployed);
      return [...differences, ...allowed].map((difference) => {
        const problem = differenceProblem(difference);
        const { level, text, fix, followUp = [], call } = problem;
        expect(whoChanged(problem)).toContain(`AttributeKey=EventName,AttributeValue=${call}`);
        return [
          allowed.length > 0 ? 'allowed' : level,
          text,
          `  ${[fix.join(' '), ...(followUp.length > 0 ? ['audit'] : []), call].join(' | ')}`,
        ].join('\n  ');
      });
    });
    const gone = samples.map((resource) => {
      const [difference] = compared(resource, undefined).differences;
      if (difference === undefined) throw new Error('It is not gone');
      const { level, text, call } = differenceProblem(difference);
      return `${level}\n  ${text}\n    ${call}`;
    });
    const all = `${[...lines.flat(), ...gone].join('\n')}\n`;
    await expect(all).toMatchFileSnapshot('../captures/differences.txt');
  });
});

describe('a comparison', () => {
  const [queue] = samples as readonly [DeclaredResource];
  const worker = samples.find(({ type }) => type === 'AWS::Lambda::Function') as DeclaredResource;

  const variables = (change: Readonly<Record<string, string | undefined>>) => ({
    ...worker.properties,
    Environment: {
      Variables: { MAILROOM_LEASE_MS: '30000', MAILROOM_SHARDS: '8', API_KEY: 'secret', ...change },
    },
  });

  test('shows no value of a variable that may be a secret', () => {
    const [difference] = compared(worker, variables({ API_KEY: 'other' })).differences;
    if (difference === undefined) throw new Error('No difference');
    const problem = differenceProblem(difference);
    expect(problem).toMatchObject({ declared: 'hidden', deployed: 'hidden' });
    expect(JSON.stringify(problem)).not.toMatch(/secret"|other"/);
    expect(problem.text).toContain('API_KEY of the function worker-function was changed');
  });

  test('names both values of a setting, and its effect', () => {
    const [difference] = compared(worker, variables({ MAILROOM_LEASE_MS: '600000' })).differences;
    if (difference === undefined) throw new Error('No difference');
    expect(differenceProblem(difference)).toMatchObject({
      problem: 'differs',
      type: 'AWS::Lambda::Function',
      member: 'Environment.Variables.MAILROOM_LEASE_MS',
      resource: 'WorkerFunction.Environment.Variables.MAILROOM_LEASE_MS',
      declared: '30000',
      deployed: '600000',
    });
  });

  test('lets a person raise the memory and reserve concurrency, but not stop the function', () => {
    const changed = (change: Properties) => compared(worker, { ...worker.properties, ...change });
    expect(changed({ MemorySize: 1_024 })).toMatchObject({
      differences: [],
      allowed: [{ member: 'MemorySize' }],
    });
    expect(changed({ ReservedConcurrentExecutions: 5 }).differences).toEqual([]);
    expect(changed({ ReservedConcurrentExecutions: 0 }).differences).toHaveLength(1);
  });

  test('counts the declared members that it does not read', () => {
    const tagged = { ...queue, properties: { ...queue.properties, Tags: [], QueueName: 'worker-queue' } };
    const { notCompared } = compared(tagged, queue.properties);
    expect(notCompared).toEqual([{ type: queue.type, member: 'Tags', why: 'not read' }]);
  });
});
