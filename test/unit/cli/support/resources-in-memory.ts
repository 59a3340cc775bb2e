import type { DeclaredResource } from '../../../../cli/deployment/declared-resources.ts';
import type {
  BacklogHistory,
  DeployedAlarm,
  DeployedForward,
  DeployedFunction,
  DeployedQueue,
  Invocations,
  Mapping,
  QueueReader,
  Resources,
} from '../../../../cli/deployment/resources.ts';
import { runChecks } from '../../../../cli/reports/checks/check.ts';
import { flowChecks } from '../../../../cli/reports/checks/checks.ts';
import type { DoctorDeps } from '../../../../cli/reports/findings/examination.ts';
import { relaySettings } from '../../../../lambdas/runtime/base/config.ts';
import { consumerSettings } from '../../../../lambdas/runtime/base/consumer-config.ts';
import { encodeRulePattern } from '../../../../lambdas/runtime/bus/rule-pattern.ts';
import {
  type DeployedRule,
  type DeployedTarget,
  ruleName,
} from '../../../../lambdas/runtime/operations/audit/audit-drift.ts';
import {
  type ConsumerEntry,
  type Directory,
  invokedFunction,
} from '../../../../lambdas/runtime/operations/directory.ts';
import { mailroomEventsOf } from '../../../../lambdas/runtime/operations/subscribed-events.ts';
import { SCHEMA } from '../../../../lambdas/runtime/store/row-schema.ts';
import { consumerConfig, relayConfig } from '../../../support/runtime-rig.ts';
import { directory as deployed, queueArn } from './mailroom-in-memory.ts';

const TABLE_ARN = 'arn:aws:dynamodb:eu-west-1:111122223333:table/Mailroom';
const NOW = 1_795_266_039_731;

/** The settings of a mapping that reports each failed item. */
const SETTINGS = {
  enabled: true,
  state: 'Enabled',
  isSettled: true,
  filters: [],
  batchSize: 10,
  batchingWindowMs: 0,
  concurrencyMax: 100,
};

/** A target of a rule that has no dead-letter queue. */
export function targetOf(arn: string): DeployedTarget {
  return { id: 'Target0', arn, deadLetterQueue: undefined };
}

/** The policy of a consumer's queue: see `lib/mailroom/queue-senders.ts`. */
function queuePolicy({ mailroom, consumers }: Directory): string {
  const own = consumers.flatMap((consumer) => {
    const rule = ruleName(consumer);
    return [rule && `${mailroom.bus}/${rule}`, consumer.externalRule?.name].filter(
      (name) => name !== undefined,
    );
  });
  const rules = {
    'aws:SourceArn': own.map((name) => `arn:aws:events:eu-west-1:111122223333:rule/${name}`),
  };
  const Principal = { Service: 'events.amazonaws.com' };
  return JSON.stringify({
    Statement: [
      { Effect: 'Allow', Principal, Action: 'sqs:SendMessage', Condition: { ArnEquals: rules } },
      {
        Effect: 'Deny',
        Principal: { AWS: '*' },
        Action: 'sqs:SendMessage',
        Condition: { Null: { 'aws:PrincipalTag/mailroom': 'false' } },
      },
    ],
  });
}

function alarm(name: string, stack: string, changes: Partial<DeployedAlarm> = {}): DeployedAlarm {
  return {
    name,
    arn: `arn:aws:cloudwatch:eu-west-1:111122223333:alarm:${name}`,
    description: `It failed.\nRun first: npx cdk-mailroom status --region eu-west-1 --stack ${stack}\nThen read: x`,
    isFiring: false,
    actionsEnabled: true,
    actions: ['arn:aws:sns:eu-west-1:111122223333:page'],
    rule: undefined,
    ...changes,
  };
}

/** Counts of invocations of a function. @param newest - the errors after its last success, and since when */
export function invoked(
  errors: number,
  invocations: number = errors,
  newest: Invocations['newest'] = { errors: 0, forMs: 0 },
): Invocations {
  return { invocations, errors, newest };
}

/** The deployed resources of a Mailroom, healthy until a test changes them. */
export function resourcesInMemory(directory: Directory = deployed) {
  const { mailroom, consumers } = directory;
  const { bus: busName, streamFunction, sweepFunction } = mailroom;
  const queue =
    (redrive?: object) =>
    (url: string): [string, DeployedQueue] => [
      url,
      {
        url,
        arn: queueArn(url),
        messages: 0,
        visibilityS: 180,
        retentionS: 14 * 86_400,
        redrive: redrive && JSON.stringify(redrive),
        key: undefined,
      },
    ];
  const queues = new Map([
    queue()(mailroom.failureQueue),
    ...consumers.flatMap(({ queue: url, deadLetterQueue, undeliveredQueue, maxAttempts }) => [
      queue({ deadLetterTargetArn: queueArn(deadLetterQueue), maxReceiveCount: maxAttempts + 15 })(url),
      ...[deadLetterQueue, undeliveredQueue ?? []].flat().map(queue()),
    ]),
  ]);
  const functions = functionsOf(directory);
  const streamArn = `${TABLE_ARN}/stream/2026`;
  const mappings = new Map<string, Mapping[]>([
    [streamFunction, [{ uuid: 'stream-mapping', source: streamArn, ...SETTINGS }]],
    ...consumers.map(({ name, function: handler, alias, queue: url }): [string, Mapping[]] => [
      invokedFunction(handler, alias),
      [{ uuid: `${name}-mapping`, source: queueArn(url), ...SETTINGS }],
    ]),
  ]);
  const reserved = new Map<string, number | null>(
    [streamFunction, sweepFunction, ...consumers.map((consumer) => consumer.function)].map((name) => [
      name,
      null,
    ]),
  );
  const buses = new Set([busName]);
  const rules = new Map<string, DeployedRule>([
    [
      `default|${mailroom.sweepRule}`,
      { enabled: true, pattern: '', targets: [targetOf(`arn:aws:lambda:x:1:function:${sweepFunction}`)] },
    ],
    ...consumers.map((consumer): [string, DeployedRule] => [
      `${busName}|${consumer.rule}`,
      {
        enabled: true,
        pattern: JSON.stringify(encodeRulePattern(mailroomEventsOf(consumer))),
        targets: [
          {
            ...targetOf(queueArn(consumer.queue)),
            deadLetterQueue: queueArn(consumer.undeliveredQueue ?? ''),
          },
        ],
      },
    ]),
  ]);
  const table = {
    arn: TABLE_ARN,
    streamArn: streamArn as string | undefined,
    key: undefined as string | undefined,
  };
  const readers = new Map<string, QueueReader[]>(
    consumers.map(({ name, function: handler, queue: url }) => [
      queueArn(url),
      [{ uuid: `${name}-mapping`, function: handler }],
    ]),
  );
  const keys = new Map<string, string>();
  const forwards: DeployedForward[] = [];
  const settings = {
    concurrency: { limit: 1_000, unreserved: 1_000 },
    peak: undefined as number | undefined,
    invocations: new Map<string, Invocations>(),
    /** The tables of the account's Mailrooms. */
    tables: [mailroom.table],
    backlog: { waiting: [], agesMs: [] } as BacklogHistory,
    alarms: [alarm('mailroom-ops-Stuck-1A', mailroom.stack), alarm('other', 'other-stack', { actions: [] })],
  };
  const resources: Resources = {
    table: async () => table,
    hasBus: async (name) => buses.has(name),
    rule: async (bus, name) => rules.get(`${bus}|${name}`),
    queue: async (url) => queues.get(url),
    mappings: async (name) => mappings.get(name) ?? [],
    readers: async (arn) => readers.get(arn) ?? [],
    rulesTo: async (bus, arn) =>
      [...rules].flatMap(([at, { targets }]) =>
        at.startsWith(`${bus}|`) && targets.some((target) => target.arn === arn)
          ? [at.slice(bus.length + 1)]
          : [],
      ),
    forwards: async () => forwards,
    keyState: async (id) => keys.get(id),
    function: async (name) => functions.get(name),
    writers: async () =>
      [...functions].flatMap(([name, { environment }]) =>
        environment.MAILROOM_SERVICE === undefined ? [] : [{ name, environment }],
      ),
    hasMailroom: async (name) => settings.tables.includes(name),
    reservedConcurrency: async (name) => reserved.get(name),
    concurrency: async () => settings.concurrency,
    concurrencyPeak: async () => settings.peak,
    invocations: async (name) => settings.invocations.get(name) ?? invoked(0, 0),
    backlog: async () => settings.backlog,
    alarms: async () => settings.alarms,
  };
  const declared = declaredResources(directory);
  const properties = new Map<string, DeclaredResource['properties'] | undefined>(
    declared.map((resource) => [resource.logicalId, resource.properties]),
  );
  const deps: DoctorDeps = {
    directory,
    resources,
    declarations: {
      of: async ({ stack: name }) => declared.filter(({ stack }) => stack.stack === name),
    },
    properties: {
      of: async ({ type, physicalId }) => {
        const found = declared.find((one) => one.type === type && one.physicalId === physicalId);
        return properties.get(found?.logicalId ?? '');
      },
    },
    pauses: async () => undefined,
    now: NOW,
    sweptAt: async () => NOW - 60_000,
    rowSchema: async () => SCHEMA,
    machineAheadMs: 0,
    roles: 'local',
  };
  const changeFunction = (name: string, change: Partial<DeployedFunction>) =>
    replace(functions, name, change);
  const changeMapping = (name: string, change: Partial<Mapping>) =>
    mappings.set(
      name,
      (mappings.get(name) ?? []).map((mapping) => ({ ...mapping, ...change })),
    );
  return {
    resources,
    deps,
    declared,
    /** Sets a member of a deployed resource; `undefined` unsets it. */
    changeMember: (logicalId: string, member: string, value: unknown) =>
      replace(properties, logicalId, { [member]: value }),
    /** Deletes a deployed resource. */
    removeResource: (logicalId: string) => properties.set(logicalId, undefined),
    mappings,
    reserved,
    readers,
    keys,
    forwards,
    buses,
    rules,
    queues,
    table,
    settings,
    alarm: (name: string, changes: Partial<DeployedAlarm>) => alarm(name, mailroom.stack, changes),
    changeQueue: (url: string, change: Partial<DeployedQueue>) => replace(queues, url, change),
    changeRule: (name: string, change: Partial<DeployedRule>) => replace(rules, name, change),
    changeFunction,
    /** Adds a function that no construct has made. */
    addFunction: (name: string, environment: Readonly<Record<string, string>>) =>
      functions.set(name, running(environment)),
    changeEnvironment: (name: string, change: Readonly<Record<string, string>>) =>
      changeFunction(name, { environment: { ...functions.get(name)?.environment, ...change } }),
    changeMapping,
    /** Changes a mapping at once. */
    enableMapping: async (uuid: string, enabled: boolean) => {
      for (const [name, own] of mappings)
        if (own.some((mapping) => mapping.uuid === uuid)) changeMapping(name, { enabled });
    },
  };
}

/** What the stacks of a Mailroom declare, as far as a test changes it. */
function declaredResources({ mailroom, consumers }: Directory): DeclaredResource[] {
  const { table, bus, failureQueue, sweepFunction } = mailroom;
  const retention = { MessageRetentionPeriod: 14 * 86_400 };
  const Variables = { MAILROOM_TABLE: table, API_KEY: 'secret' };
  const queue = 'AWS::SQS::Queue';
  return [
    {
      ...{ type: 'AWS::DynamoDB::GlobalTable', logicalId: 'Table', physicalId: table, part: 'table' },
      properties: {
        StreamSpecification: { StreamViewType: 'NEW_IMAGE' },
        TimeToLiveSpecification: { AttributeName: 'expiresAt', Enabled: true },
        Replicas: [{ Region: 'eu-west-1', DeletionProtectionEnabled: true }],
      },
    },
    {
      ...{ type: queue, logicalId: 'Failures', physicalId: failureQueue, part: 'stream relay' },
      properties: retention,
    },
    {
      ...{ type: 'AWS::Lambda::Function', logicalId: 'Sweep', physicalId: sweepFunction, part: 'sweep' },
      properties: { Environment: { Variables } },
    },
    ...consumers.flatMap((consumer) => {
      const { name: part, queue: url, deadLetterQueue, rule = '', maxAttempts } = consumer;
      const RedrivePolicy = {
        deadLetterTargetArn: queueArn(deadLetterQueue),
        maxReceiveCount: maxAttempts + 15,
      };
      const target = { Id: 'Target0', Arn: queueArn(url) };
      return [
        {
          ...{ type: queue, logicalId: `${part}Queue`, physicalId: url, part },
          properties: { ...retention, VisibilityTimeout: 180, RedrivePolicy },
        },
        {
          ...{ type: queue, logicalId: `${part}DeadLetters`, physicalId: deadLetterQueue, part },
          properties: retention,
        },
        {
          ...{ type: 'AWS::SQS::QueuePolicy', logicalId: `${part}QueuePolicy`, physicalId: 'policy', part },
          properties: { Queues: [url], PolicyDocument: JSON.parse(queuePolicy({ mailroom, consumers })) },
        },
        {
          ...{ type: 'AWS::Events::Rule', logicalId: `${part}Rule`, physicalId: `${bus}|${rule}`, part },
          properties: { State: 'ENABLED', Targets: [target] },
        },
        {
          ...{ type: 'AWS::Lambda::EventSourceMapping', logicalId: `${part}Mapping`, part },
          physicalId: `${part}-mapping`,
          properties: {
            FunctionName: consumer.function,
            EventSourceArn: queueArn(url),
            FunctionResponseTypes: ['ReportBatchItemFailures'],
            ScalingConfig: { MaximumConcurrency: 100 },
          },
        },
        {
          ...{ type: 'AWS::Lambda::Function', logicalId: `${part}Function`, part },
          physicalId: consumer.function,
          properties: { Environment: { Variables }, MemorySize: 512 },
        },
      ].map((resource) => ({ ...resource, stack: consumer }));
    }),
  ].map((resource) => ({ stack: mailroom, ...resource }));
}

function running(environment: Readonly<Record<string, string>>): DeployedFunction {
  return {
    timeoutS: 30,
    role: 'arn:aws:iam::111122223333:role/any',
    environment,
    memoryMb: 512,
    runtime: 'nodejs24.x',
    logGroup: undefined,
    failure: undefined,
  };
}

/** The functions of a Mailroom, with the settings that its consumers and its relay declare. */
function functionsOf({ mailroom, consumers }: Directory): Map<string, DeployedFunction> {
  const { table: tableName, bus: busName, shards } = mailroom;
  const relay = running(
    relaySettings.encode({ ...relayConfig, tableName, busName, shards, sources: ['things'] }),
  );
  const consumerOf = ({ name, queue: queueUrl }: ConsumerEntry) =>
    consumerSettings.encode({
      ...consumerConfig,
      tableName,
      shards,
      consumer: name,
      queueUrl,
      visibilityTimeoutMs: 180_000,
      publishes: ['ThingDone'],
    });
  return new Map([
    [mailroom.streamFunction, relay],
    [mailroom.sweepFunction, relay],
    ...consumers.map((consumer): [string, DeployedFunction] => [
      invokedFunction(consumer.function, consumer.alias),
      running(consumerOf(consumer)),
    ]),
  ]);
}

function replace<T>(map: Map<string, T>, name: string, change: Partial<T>): void {
  const found = map.get(name);
  if (found === undefined) throw new Error(`There is no ${name}`);
  map.set(name, { ...found, ...change });
}

/** Makes the checks of a healthy Mailroom, for tests about other things. */
export const wired = wiringOf(resourcesInMemory().resources);

/** The dependency of `readStatus` on the checks. */
export function wiringOf(resources: Resources, directory: Directory = deployed) {
  const { deps } = resourcesInMemory(directory);
  return (sweep: Pick<DoctorDeps, 'now' | 'sweptAt'> = deps) =>
    runChecks(flowChecks({ ...deps, ...sweep, directory, resources }));
}
