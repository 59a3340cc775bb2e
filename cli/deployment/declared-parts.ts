import { CONSUMER_TAG, MAILROOM_TAG, SERVICE_TAG } from '../../lambdas/runtime/base/resource-tags.ts';
import type { Directory } from '../../lambdas/runtime/operations/directory.ts';

/** A resource of a stack, before it is known which part of the Mailroom it belongs to. */
export interface StackResource {
  readonly type: string;
  readonly logicalId: string;
  readonly physicalId: string;
  readonly properties: Readonly<Record<string, unknown>>;
  /** The properties as the template has them, with references. */
  readonly written: Readonly<Record<string, unknown>>;
}

/** The members that name the owner of a resource that cannot have tags, or is created by CDK constructs without them. */
const OWNER: Readonly<Record<string, string>> = {
  'AWS::Events::Archive': 'SourceArn',
  'AWS::Events::EventBusPolicy': 'EventBusName',
  'AWS::IAM::ManagedPolicy': 'Roles',
  'AWS::IAM::Policy': 'Roles',
  'AWS::Lambda::Alias': 'FunctionName',
  'AWS::Lambda::EventInvokeConfig': 'FunctionName',
  'AWS::Lambda::EventSourceMapping': 'FunctionName',
  'AWS::Lambda::Permission': 'FunctionName',
  'AWS::Lambda::Version': 'FunctionName',
  'AWS::SQS::QueuePolicy': 'Queues',
};

/** The parts that many others refer to: a reference to them shows no owner. */
const SHARED: ReadonlySet<string | undefined> = new Set(['table', 'bus']);

const AUDIT_SERVICE = 'mailroom-audit';

/** A reference in a text of `Fn::Sub`. */
const VARIABLE = /\$\{([A-Za-z0-9]+)/g;

/**
 * The parts of the resources of a stack, by logical id; those that are not of this Mailroom have none. The directory's entries name some
 * of them, and the tags on those are on the others of the same Mailroom. The others are found by references.
 */
export function partsOf(
  resources: readonly StackResource[],
  directory: Directory,
  stack: string,
): ReadonlyMap<string, string> {
  const parts = new Map<string, string>();
  const inEntry = entryParts(directory, stack);
  for (const { type, logicalId, physicalId } of resources) {
    // The physical id of a rule on a custom bus is `bus|rule`; an entry has the name of the rule.
    const part = inEntry.get(`${KIND[type]} ${physicalId.split('|').at(-1)}`);
    if (part !== undefined) parts.set(logicalId, part);
  }
  const mailrooms = new Set(
    resources
      .filter(({ logicalId }) => parts.has(logicalId))
      .map((resource) => tagsOf(resource)[MAILROOM_TAG]),
  );
  mailrooms.delete(undefined);
  const isOwn = (resource: StackResource) => mailrooms.has(tagsOf(resource)[MAILROOM_TAG]);
  for (const resource of resources) {
    const part = isOwn(resource) ? ownPart(resource) : alarmPart(resource, directory);
    if (part !== undefined && !parts.has(resource.logicalId)) parts.set(resource.logicalId, part);
  }
  spread(resources, parts, isOwn);
  for (const resource of resources)
    if (isOwn(resource) && !parts.has(resource.logicalId)) parts.set(resource.logicalId, 'mailroom');
  spread(resources, parts, isOwn);
  return parts;
}

/** The kinds of resources that an entry names. */
const KIND: Readonly<Record<string, string>> = {
  'AWS::DynamoDB::GlobalTable': 'table',
  'AWS::DynamoDB::Table': 'table',
  'AWS::Events::EventBus': 'bus',
  'AWS::Events::Rule': 'rule',
  'AWS::Lambda::Function': 'function',
  'AWS::SQS::Queue': 'queue',
};

/** The parts of the resources that the entries of a stack name, by kind and physical id. */
function entryParts({ mailroom, consumers }: Directory, stack: string): ReadonlyMap<string, string> {
  const { heartbeat } = mailroom;
  const shared: readonly (readonly [string, string | undefined, string])[] = [
    ['function', mailroom.streamFunction, 'stream relay'],
    ['queue', mailroom.failureQueue, 'stream relay'],
    ['function', mailroom.sweepFunction, 'sweep'],
    ['rule', mailroom.sweepRule, 'sweep'],
    ['function', heartbeat?.function, 'heartbeat'],
    ['rule', heartbeat?.rule, 'heartbeat'],
    ['table', mailroom.table, 'table'],
    ['bus', mailroom.bus, 'bus'],
  ];
  const ofConsumers = consumers
    .filter((consumer) => consumer.stack === stack)
    .flatMap(({ name, queue, deadLetterQueue, undeliveredQueue, function: handler, rule, externalRule }) => [
      ['function', handler, name] as const,
      ...[rule, externalRule?.name].map((rule) => ['rule', rule, name] as const),
      ...[queue, deadLetterQueue, undeliveredQueue].map((url) => ['queue', url, name] as const),
    ]);
  const all = [...(mailroom.stack === stack ? shared : []), ...ofConsumers];
  return new Map(all.map(([kind, id, part]) => [`${kind} ${id}`, part]));
}

/** The part of a resource with the tags of this Mailroom, if it shows it itself. */
function ownPart(resource: StackResource): string | undefined {
  const { [CONSUMER_TAG]: consumer, [SERVICE_TAG]: service } = tagsOf(resource);
  if (consumer !== undefined) return consumer;
  if (resource.type === 'AWS::SSM::Parameter') return 'directory';
  if (resource.type !== 'AWS::Lambda::Function') return undefined;
  if (service !== undefined) return 'producer';
  const { Variables } = Object(resource.properties.Environment);
  return Object(Variables).POWERTOOLS_SERVICE_NAME === AUDIT_SERVICE ? 'audit' : 'producer';
}

/** Alarms have no tags. The text of each has a command, which names its Mailroom, or searches the logs of its stack. */
function alarmPart({ type, properties }: StackResource, { mailroom }: Directory): string | undefined {
  if (!/^AWS::CloudWatch::(Composite)?Alarm$/.test(type)) return undefined;
  const [, command] = /^Run first: (.*)$/m.exec(String(properties.AlarmDescription ?? '')) ?? [];
  if (command === undefined) return undefined;
  const [, stack = mailroom.stack] = / --stack (\S+)$/.exec(command) ?? [];
  return stack === mailroom.stack ? 'alarms' : undefined;
}

/** Gives the remaining resources the part of what they refer to, or of what refers to them, until none is left that has one. */
function spread(
  resources: readonly StackResource[],
  parts: Map<string, string>,
  isOwn: (resource: StackResource) => boolean,
): void {
  const referring = new Map<string, string[]>();
  for (const { logicalId, written } of resources)
    for (const id of referencesIn(written)) referring.set(id, [...(referring.get(id) ?? []), logicalId]);
  let left = resources.filter(
    (resource) => !parts.has(resource.logicalId) && (isOwn(resource) || Object.hasOwn(OWNER, resource.type)),
  );
  for (let before = -1; before !== left.length; ) {
    before = left.length;
    left = left.filter(({ type, logicalId, written }) => {
      const owner = OWNER[type];
      const near =
        owner === undefined
          ? [...referencesIn(written), ...(referring.get(logicalId) ?? [])]
          : referencesIn(written[owner]);
      const found = near.map((id) => parts.get(id)).filter((part) => part !== undefined);
      const part = found.find((one) => owner !== undefined || !SHARED.has(one));
      if (part !== undefined) parts.set(logicalId, part);
      return part === undefined;
    });
  }
}

/** The logical ids that a value refers to. */
function referencesIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.flatMap(referencesIn);
  return Object.entries(value).flatMap(([name, inner]) => {
    if (name === 'Ref' && typeof inner === 'string') return [inner];
    if (name === 'Fn::GetAtt') return String(Array.isArray(inner) ? inner[0] : inner).split('.', 1);
    const written = name === 'Fn::Sub' ? String(Array.isArray(inner) ? inner[0] : inner) : '';
    return [...[...written.matchAll(VARIABLE)].map(([, id = '']) => id), ...referencesIn(inner)];
  });
}

/** The tags of a resource: a list, an object, or those of a table's only replica. */
function tagsOf({
  properties: { Tags, Replicas },
}: StackResource): Readonly<Record<string, string | undefined>> {
  const tags = Tags ?? Object((Array.isArray(Replicas) ? Replicas : [])[0]).Tags;
  if (!Array.isArray(tags)) return Object(tags);
  return Object.fromEntries(tags.map((tag) => [Object(tag).Key, Object(tag).Value]));
}
