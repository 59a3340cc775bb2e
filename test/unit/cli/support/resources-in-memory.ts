import type {
  DeployedAlarm,
  DeployedFunction,
  DeployedQueue,
  DeployedResources,
  DeployedTarget,
  DoctorDeps,
} from '../../../../cli/reports/doctor/deployed-resources.ts';
import { consumerSettings, relaySettings } from '../../../../lambdas/runtime/base/config.ts';
import {
  type ConsumerEntry,
  type Directory,
  invokedFunction,
} from '../../../../lambdas/runtime/operations/directory.ts';
import { SCHEMA } from '../../../../lambdas/runtime/store/rows.ts';
import { consumerConfig, relayConfig } from '../../../support/runtime-rig.ts';
import { directory as deployed, worker } from './mailroom-in-memory.ts';
import { wiringInMemory } from './wiring-in-memory.ts';

const TABLE_ARN = 'arn:aws:dynamodb:eu-west-1:111122223333:table/Mailroom';
const NOW = 1_795_266_039_731;

const queueArn = (name: string) => `arn:aws:sqs:eu-west-1:111122223333:${name}`;

/** The policy of a consumer's queue: see `lib/mailroom/queue-senders.ts`. */
function queuePolicy(bus: string): string {
  const rules = { 'aws:SourceArn': `arn:aws:events:eu-west-1:111122223333:rule/${bus}/*` };
  const Principal = { Service: 'events.amazonaws.com' };
  return JSON.stringify({
    Statement: [
      { Effect: 'Allow', Principal, Action: 'sqs:SendMessage', Condition: { ArnLike: rules } },
      {
        Effect: 'Deny',
        Principal: { AWS: '*' },
        Action: 'sqs:SendMessage',
        Condition: { Null: { 'aws:PrincipalTag/mailroom': 'false' } },
      },
    ],
  });
}

const TABLE_POLICY = {
  Statement: [
    {
      Effect: 'Deny',
      Action: ['BatchWriteItem', 'DeleteItem', 'PartiQLDelete', 'PartiQLInsert', 'PutItem'].map(
        (action) => `dynamodb:${action}`,
      ),
      Condition: { 'ForAnyValue:StringLike': { 'dynamodb:LeadingKeys': 'INBOX#*' } },
    },
  ],
};

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

/** A deployed Mailroom, healthy until a test changes it. */
export function resourcesInMemory(directory: Directory = deployed) {
  const { mailroom, consumers } = directory;
  const wired = wiringInMemory(directory);
  const queue = (name: string, redrive?: object): DeployedQueue => ({
    arn: queueArn(name),
    visibilityS: 180,
    retentionS: 14 * 86_400,
    messageBytesMax: 1_048_576,
    delayS: 0,
    policy: queuePolicy(mailroom.bus),
    redrive: redrive && JSON.stringify(redrive),
  });
  const redriveOf = ({ deadLetterQueue, maxAttempts }: ConsumerEntry) => ({
    deadLetterTargetArn: queueArn(deadLetterQueue),
    maxReceiveCount: maxAttempts + 15,
  });
  const queues = new Map<string, DeployedQueue>([
    [mailroom.failureQueue, queue(mailroom.failureQueue)],
    ...consumers.flatMap((consumer): [string, DeployedQueue][] => [
      [consumer.queue, queue(consumer.queue, redriveOf(consumer))],
      [consumer.deadLetterQueue, queue(consumer.deadLetterQueue)],
      ...(consumer.undeliveredQueue === undefined
        ? []
        : [[consumer.undeliveredQueue, queue(consumer.undeliveredQueue)] as [string, DeployedQueue]]),
    ]),
  ]);
  const running = (environment: Readonly<Record<string, string>>): DeployedFunction => ({
    timeoutS: 30,
    role: 'arn:aws:iam::111122223333:role/any',
    environment,
    failure: undefined,
  });
  const { table: tableName, bus: busName, shards } = mailroom;
  const relay = relaySettings.encode({ ...relayConfig, tableName, busName, shards, sources: ['things'] });
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
  const functions = new Map<string, DeployedFunction>([
    [mailroom.streamFunction, running(relay)],
    [mailroom.sweepFunction, running(relay)],
    ...consumers.map((consumer): [string, DeployedFunction] => [
      invokedFunction(consumer.function, consumer.alias),
      running(consumerOf(consumer)),
    ]),
  ]);
  const targets = new Map<string, DeployedTarget>(
    consumers.map(({ rule = '', queue: url, undeliveredQueue = '' }) => [
      rule,
      { id: 'Target0', arn: queueArn(url), deadLetterQueue: queueArn(undeliveredQueue) },
    ]),
  );
  // The wiring of other tests has URLs where this has ARNs.
  for (const { rule = '', queue: url, function: handler, alias } of consumers) {
    const name = invokedFunction(handler, alias);
    const found = wired.rules.get(`${mailroom.bus}|${rule}`);
    if (found) wired.rules.set(`${mailroom.bus}|${rule}`, { ...found, targets: [queueArn(url)] });
    const own = wired.mappings.get(name) ?? [];
    wired.mappings.set(
      name,
      own.map((mapping) => ({ ...mapping, source: queueArn(url) })),
    );
  }
  const stream = wired.mappings.get(mailroom.streamFunction) ?? [];
  wired.mappings.set(
    mailroom.streamFunction,
    stream.map((mapping) => ({ ...mapping, failureDestination: queueArn(mailroom.failureQueue) })),
  );
  const table = { arn: TABLE_ARN, isProtected: true, streamView: 'NEW_IMAGE', streamArn: wired.state.stream };
  const state = {
    expiryAttribute: 'expiresAt' as string | undefined,
    tablePolicy: JSON.stringify(TABLE_POLICY) as string | undefined,
    hasRecovery: true,
    concurrency: { limit: 1_000, unreserved: 1_000 },
    peak: undefined as number | undefined,
    alarms: [alarm('mailroom-ops-Stuck-1A', mailroom.stack), alarm('other', 'other-stack', { actions: [] })],
  };
  const resources: DeployedResources = {
    table: async () => table,
    expiryAttribute: async () => state.expiryAttribute,
    tablePolicy: async () => state.tablePolicy,
    hasRecovery: async () => state.hasRecovery,
    queue: async (url) => queues.get(url),
    targets: async (_bus, rule) => [targets.get(rule) ?? []].flat(),
    function: async (name) => functions.get(name),
    concurrency: async () => state.concurrency,
    concurrencyPeak: async () => state.peak,
    alarms: async () => state.alarms,
  };
  const deps: DoctorDeps = {
    directory,
    wiring: wired.wiring,
    resources,
    pauses: async () => undefined,
    now: NOW,
    sweptAt: async () => NOW - 60_000,
    rowSchema: async () => SCHEMA,
    machineAheadMs: 0,
    roles: 'local',
  };
  return {
    ...wired,
    deps,
    queues,
    functions,
    targets,
    table,
    settings: state,
    alarm: (name: string, changes: Partial<DeployedAlarm>) => alarm(name, mailroom.stack, changes),
    changeQueue: (url: string, change: Partial<DeployedQueue>) => replace(queues, url, change),
    changeFunction: (name: string, change: Partial<DeployedFunction>) => replace(functions, name, change),
    changeEnvironment: (name: string, change: Readonly<Record<string, string>>) =>
      replace(functions, name, { environment: { ...functions.get(name)?.environment, ...change } }),
    changeMapping: (name: string, change: object) =>
      wired.mappings.set(
        name,
        (wired.mappings.get(name) ?? []).map((mapping) => ({ ...mapping, ...change })),
      ),
    worker,
  };
}

function replace<T>(map: Map<string, T>, name: string, change: Partial<T>): void {
  const found = map.get(name);
  if (found === undefined) throw new Error(`There is no ${name}`);
  map.set(name, { ...found, ...change });
}
