import { list, type Part, type Parts, type Properties, statement } from './parts.ts';

/** A template of CloudFormation, with the resources of SAM or without. */
export interface CfnTemplate {
  readonly Resources: Readonly<Record<string, CfnResource>>;
  readonly Globals?: { readonly Function?: Properties };
}

interface CfnResource {
  readonly Type: string;
  readonly Properties?: Properties;
  readonly DependsOn?: string | readonly string[];
  readonly DeletionPolicy?: string;
  readonly UpdateReplacePolicy?: string;
}

/** The stack's id: its last part ends the physical names that the constructs give. */
const STACK_ID = 'arn/stack/id-of-stack';

/** In the ARN of a rule, the part before its name. */
export const RULES = 'events:{AWS::Region}:{AWS::AccountId}:rule/{Bus}/';

/** The property with a resource's own name, and the ARN that the name becomes a part of. */
const NAMED: Readonly<Record<string, { readonly property: string; readonly arn: string }>> = {
  'AWS::SQS::Queue': { property: 'QueueName', arn: 'sqs:{AWS::Region}:{AWS::AccountId}:' },
  'AWS::Events::EventBus': { property: 'Name', arn: 'events:{AWS::Region}:{AWS::AccountId}:event-bus/' },
  'AWS::Events::Rule': { property: 'Name', arn: RULES },
};

/**
 * Reads the parts of a template. Resources of SAM become those of CloudFormation, as SAM's transform makes them.
 *
 * @param nameOf - the name of a part by the logical id of its resource; `undefined` leaves the resource out
 */
export function cloudFormationParts(
  template: CfnTemplate,
  nameOf: (logicalId: string) => string | undefined = (id) => id,
): Parts {
  const resources = Object.entries(withoutSam(template));
  const resolver = new Resolver((id) => nameOf(id) ?? id);
  const physical = resources.flatMap(([id, { Type, Properties = {} }]) => {
    const named = NAMED[Type];
    const given = named && Properties[named.property];
    if (given === undefined || named === undefined) return [];
    return [{ text: String(resolver.resolve(given)), name: nameOf(id) ?? id, arn: named.arn }];
  });
  const parts = resources.flatMap(([id, { Type, Properties = {} }]): [string, Part][] => {
    const name = nameOf(id);
    const properties = PROPERTIES[Type]?.(withNames(resolver.resolve(Properties), physical) as Properties);
    if (name === undefined) return [];
    if (properties === undefined) throw new Error(`${id} has the type ${Type}, which is not read here`);
    return [[name, { type: Type.replace('GlobalTable', 'Table'), properties }]];
  });
  return Object.fromEntries(parts);
}

/** What becomes of each part when it is deleted or replaced, for parts that are not just deleted. */
export function keptParts(
  { Resources }: CfnTemplate,
  nameOf: (logicalId: string) => string | undefined = (id) => id,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(Resources).flatMap(([id, { DeletionPolicy, UpdateReplacePolicy }]) =>
      DeletionPolicy === undefined ? [] : [[nameOf(id), `${DeletionPolicy}, ${UpdateReplacePolicy}`]],
    ),
  );
}

/** What a resource waits for, directly and by references. @param id - its logical id */
export function deployedBefore({ Resources }: CfnTemplate, id: string): ReadonlySet<string> {
  const found = new Set<string>();
  const look = (one: string) => {
    const { DependsOn = [], Properties } = Resources[one] ?? {};
    const text = JSON.stringify(Properties ?? {});
    const referred = Object.keys(Resources).filter((other) =>
      new RegExp(`"Ref":"${other}"|"Fn::GetAtt":\\["${other}"|\\$\\{${other}[.}]`).test(text),
    );
    for (const next of [...list<string>(DependsOn), ...referred]) {
      if (found.has(next)) continue;
      found.add(next);
      look(next);
    }
  };
  look(id);
  return found;
}

/** Expands what the templates use of SAM: functions with a role, and the globals that apply to them. */
function withoutSam({ Resources, Globals }: CfnTemplate): Record<string, CfnResource> {
  return Object.fromEntries(
    Object.entries(Resources).flatMap(([id, resource]) => {
      if (resource.Type !== 'AWS::Serverless::Function') return [[id, resource]];
      const { EventInvokeConfig, ...own } = { ...Globals?.Function, ...resource.Properties } as Properties;
      const invoke = {
        Type: 'AWS::Lambda::EventInvokeConfig',
        Properties: { FunctionName: { Ref: id }, Qualifier: '$LATEST', ...EventInvokeConfig },
      };
      return [
        [id, { ...resource, Type: 'AWS::Lambda::Function', Properties: own }],
        ...(EventInvokeConfig === undefined ? [] : [[`${id}Invoke`, invoke] as [string, CfnResource]]),
      ];
    }),
  );
}

class Resolver {
  readonly #nameOf: (id: string) => string;

  constructor(nameOf: (id: string) => string) {
    this.#nameOf = nameOf;
  }

  resolve(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((one) => this.resolve(one));
    if (typeof value !== 'object' || value === null) return value;
    const [[key, argument] = ['', undefined], ...more] = Object.entries(value);
    const called = more.length === 0 ? this.#call(key, argument) : undefined;
    if (called !== undefined) return called;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, this.resolve(one)]));
  }

  #call(key: string, argument: unknown): unknown {
    if (key === 'Ref') return this.#ref(String(argument));
    if (key === 'Fn::GetAtt') {
      const [id = '', attribute = ''] = Array.isArray(argument) ? argument : String(argument).split('.');
      return `{${this.#nameOf(id)}.${attribute}}`;
    }
    if (key === 'Fn::Sub')
      return String(argument).replace(/\$\{([^}]+)\}/g, (_, name: string) => this.#ref(name));
    if (!['Fn::Join', 'Fn::Select', 'Fn::Split'].includes(key)) return undefined;
    const [first, second] = this.resolve(argument) as [string, string[] & string];
    if (key === 'Fn::Join') return second.join(first);
    return key === 'Fn::Select' ? second[Number(first)] : second.split(first);
  }

  #ref(name: string): string {
    if (name === 'AWS::StackId') return STACK_ID;
    return name.startsWith('AWS::') ? `{${name}}` : `{${this.#nameOf(name)}}`;
  }
}

/** Replaces physical names by the names of the parts: first in ARNs, then elsewhere. */
export function withNames(
  value: unknown,
  physical: readonly { readonly text: string; readonly name: string; readonly arn: string }[],
): unknown {
  const text = physical.reduce(
    (replaced, { text, name, arn }) =>
      replaced
        .replaceAll(`arn:{AWS::Partition}:${arn}${text}`, `{${name}.Arn}`)
        .replaceAll(JSON.stringify(text), JSON.stringify(`{${name}}`)),
    JSON.stringify(value),
  );
  return JSON.parse(text);
}

const policy = ({ Statement }: Properties) => ({ Statement: list<Properties>(Statement).map(statement) });

/** What is compared of each type. Descriptions and most tags are left out. */
const PROPERTIES: Readonly<Record<string, (properties: Properties) => Properties>> = {
  'AWS::DynamoDB::GlobalTable': ({ Replicas: [replica], ...table }) => tableOf({ ...table, ...replica }),
  'AWS::DynamoDB::Table': tableOf,
  'AWS::Events::EventBus': ({ Policy }) => policy(Policy),
  'AWS::Logs::LogGroup': ({ RetentionInDays }) => ({ RetentionInDays }),
  'AWS::IAM::Role': ({ AssumeRolePolicyDocument: { Statement }, Tags }) => ({
    // It has no resource.
    Trusts: list<Properties>(Statement).map(({ Action, Principal }) => ({ Action, Principal })),
    Tags: list<Properties>(Tags).flatMap(({ Key }) => (Key === 'mailroom' ? [Key] : [])),
  }),
  'AWS::IAM::ManagedPolicy': ({ Roles, PolicyDocument }) => ({ Roles, ...policy(PolicyDocument) }),
  'AWS::Lambda::Function': ({ Code, CodeUri, Tags, Description, ...rest }) => rest,
  'AWS::Lambda::EventInvokeConfig': (properties) => properties,
  'AWS::Lambda::Permission': (properties) => properties,
  'AWS::Lambda::EventSourceMapping': ({ Tags, FilterCriteria, ...rest }) => ({
    ...rest,
    ...(FilterCriteria && {
      Filters: list<Properties>(FilterCriteria.Filters).map(({ Pattern }) => JSON.parse(Pattern)),
    }),
  }),
  'AWS::SQS::Queue': ({ Tags, QueueName, ...rest }) => rest,
  'AWS::SQS::QueuePolicy': ({ Queues, PolicyDocument }) => ({ Queues, ...policy(PolicyDocument) }),
  'AWS::Events::Rule': ({ Tags, Description, State, Name, Targets, ...rest }) => ({
    ...rest,
    Targets: list<Properties>(Targets).map(({ Id, Input, ...target }) => ({
      ...target,
      ...(Input && { Input: JSON.parse(Input) }),
    })),
  }),
  'AWS::SSM::Parameter': ({ Name, Value, Type, Tier }) => ({ Name, Type, Tier, Value: jsonOr(Value) }),
};

function tableOf({ SSESpecification, Region, Tags, ResourcePolicy, ...table }: Properties): Properties {
  return { ...table, ...policy(ResourcePolicy.PolicyDocument) };
}

function jsonOr(text: string): unknown {
  return text.startsWith('{"') ? JSON.parse(text) : text;
}
