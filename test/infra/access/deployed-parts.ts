import { createHash } from 'node:crypto';
import { type App, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';

/**
 * What the templates of an app become once they are deployed: every resource with a name and an ARN in plain text, and
 * every property with its references resolved. A policy simulator knows no `Ref`.
 */
export interface DeployedPart {
  /** The construct id of its stack. */
  readonly stack: string;
  /** Its logical id, without the hash. */
  readonly id: string;
  readonly type: string;
  readonly name: string;
  readonly arn: string;
  // biome-ignore lint/suspicious/noExplicitAny: a template is JSON of any shape
  readonly properties: any;
}

export const ACCOUNT = '111122223333';
export const REGION = 'eu-west-1';

const PSEUDO_PARAMETERS: Readonly<Record<string, string>> = {
  'AWS::AccountId': ACCOUNT,
  'AWS::Region': REGION,
  'AWS::Partition': 'aws',
  'AWS::URLSuffix': 'amazonaws.com',
};

/** The property in which a resource may be given its name; else CloudFormation makes one up. */
const NAME_PROPERTIES: Readonly<Record<string, string>> = {
  'AWS::SQS::Queue': 'QueueName',
  'AWS::Events::EventBus': 'Name',
  'AWS::Events::Rule': 'Name',
  'AWS::IAM::Role': 'RoleName',
  'AWS::SSM::Parameter': 'Name',
};

/** What stands in an ARN between the account and the name. */
const ARN_PREFIXES: Readonly<Record<string, string>> = {
  'AWS::DynamoDB::GlobalTable': `dynamodb:${REGION}:${ACCOUNT}:table/`,
  'AWS::Events::EventBus': `events:${REGION}:${ACCOUNT}:event-bus/`,
  'AWS::Events::Rule': `events:${REGION}:${ACCOUNT}:rule/`,
  'AWS::IAM::Role': `iam::${ACCOUNT}:role/`,
  'AWS::KMS::Key': `kms:${REGION}:${ACCOUNT}:key/`,
  'AWS::Lambda::Function': `lambda:${REGION}:${ACCOUNT}:function:`,
  'AWS::Logs::LogGroup': `logs:${REGION}:${ACCOUNT}:log-group:`,
  'AWS::SNS::Topic': `sns:${REGION}:${ACCOUNT}:`,
  'AWS::SQS::Queue': `sqs:${REGION}:${ACCOUNT}:`,
  'AWS::SSM::Parameter': `ssm:${REGION}:${ACCOUNT}:parameter`,
};

interface RawResource {
  readonly Type: string;
  readonly Properties?: Record<string, unknown>;
}

interface StackTemplate {
  readonly stack: string;
  readonly stackName: string;
  readonly resources: Readonly<Record<string, RawResource>>;
  readonly parameters: Readonly<Record<string, { readonly Type: string; readonly Default?: unknown }>>;
  readonly outputs: Readonly<
    Record<string, { readonly Value: unknown; readonly Export?: { readonly Name: string } }>
  >;
}

/** Everything that an app deploys. */
export function deployedParts(app: App): DeployedPart[] {
  const templates = app.node.children.filter(Stack.isStack).map(templateOf);
  const names = new Names(templates);
  return templates.flatMap((template) =>
    Object.entries(template.resources).map(([logicalId, resource]) => {
      const { Type: type, Properties = {} } = resource;
      const part = {
        stack: template.stack,
        id: logicalId.replace(/[0-9A-F]{8}$/, ''),
        type,
        name: names.nameOf(template, logicalId),
        arn: names.arnOf(template, logicalId),
      };
      // Most resources are never looked into, and may hold references that nobody resolves here.
      return {
        ...part,
        get properties() {
          return names.resolve(template, Properties);
        },
      };
    }),
  );
}

/** Each stack has its own id, so a name that contains one means nothing in another stack. */
function stackId({ stackName }: StackTemplate): string {
  const id = createHash('sha256').update(stackName).digest('hex').slice(0, 8);
  return `arn:aws:cloudformation:${REGION}:${ACCOUNT}:stack/${stackName}/${id}-da77-11e4-872e-1234567890ab`;
}

function templateOf(stack: Stack): StackTemplate {
  const { Resources = {}, Outputs = {}, Parameters = {} } = Template.fromStack(stack).toJSON();
  const { node, stackName } = stack;
  return { stack: node.id, stackName, resources: Resources, parameters: Parameters, outputs: Outputs };
}

class Names {
  readonly #exports = new Map<string, { readonly template: StackTemplate; readonly value: unknown }>();
  readonly #templates: readonly StackTemplate[];

  constructor(templates: readonly StackTemplate[]) {
    this.#templates = templates;
    for (const template of templates) {
      for (const { Export, Value } of Object.values(template.outputs)) {
        if (Export !== undefined) this.#exports.set(Export.Name, { template, value: Value });
      }
    }
  }

  nameOf(template: StackTemplate, logicalId: string): string {
    const resource = resourceOf(template, logicalId);
    const property = NAME_PROPERTIES[resource.Type];
    const given = property === undefined ? undefined : resource.Properties?.[property];
    return given === undefined ? `${template.stackName}-${logicalId}` : String(this.resolve(template, given));
  }

  arnOf(template: StackTemplate, logicalId: string): string {
    const { Type } = resourceOf(template, logicalId);
    const prefix = ARN_PREFIXES[Type] ?? `unknown:${REGION}:${ACCOUNT}:${Type}/`;
    const { EventBusName } = resourceOf(template, logicalId).Properties ?? {};
    // A rule of another bus than the default one is named after it.
    const bus = EventBusName === undefined ? '' : `${this.resolve(template, EventBusName)}/`;
    return `arn:aws:${prefix}${bus}${this.nameOf(template, logicalId)}`;
  }

  /** The value with every reference in it replaced by plain text. */
  resolve(template: StackTemplate, value: unknown): unknown {
    if (Array.isArray(value)) return value.map((one) => this.resolve(template, one));
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value);
    const [[key, argument] = ['', undefined]] = entries;
    if (entries.length === 1 && (key === 'Ref' || key.startsWith('Fn::')))
      return this.#reference(template, key, argument);
    return Object.fromEntries(entries.map(([name, one]) => [name, this.resolve(template, one)]));
  }

  #reference(template: StackTemplate, kind: string, argument: unknown): unknown {
    switch (kind) {
      case 'Ref':
        return this.#ref(template, String(argument));
      case 'Fn::GetAtt':
        return this.#attribute(template, argument as [string, string]);
      case 'Fn::Join': {
        const [separator, parts] = argument as [string, unknown];
        return (this.resolve(template, parts) as string[]).join(separator);
      }
      case 'Fn::Select': {
        const [index, parts] = argument as [number, unknown];
        return (this.resolve(template, parts) as string[])[index];
      }
      case 'Fn::Split': {
        const [separator, text] = argument as [string, unknown];
        return String(this.resolve(template, text)).split(separator);
      }
      case 'Fn::ImportValue': {
        const found = this.#exports.get(String(argument));
        if (found === undefined) throw new Error(`Nothing exports ${String(argument)}`);
        return this.resolve(found.template, found.value);
      }
      case 'Fn::Sub':
        return String(argument).replace(/\$\{([^}]+)\}/g, (_all, name: string) =>
          String(this.#ref(template, name)),
        );
      default:
        throw new Error(
          `${kind} of ${JSON.stringify(argument)} is not known here: teach it to deployed-parts.ts`,
        );
    }
  }

  #ref(template: StackTemplate, name: string): unknown {
    if (name === 'AWS::StackId') return stackId(template);
    const pseudo = PSEUDO_PARAMETERS[name];
    if (pseudo !== undefined) return pseudo;
    const parameter = template.parameters[name];
    if (parameter !== undefined) return this.#stored(parameter.Type, String(parameter.Default));
    const { Type } = resourceOf(template, name);
    if (Type === 'AWS::SQS::Queue')
      return `https://sqs.${REGION}.amazonaws.com/${ACCOUNT}/${this.nameOf(template, name)}`;
    return Type === 'AWS::SNS::Topic' ? this.arnOf(template, name) : this.nameOf(template, name);
  }

  /** The value of a parameter of Parameter Store that one of the stacks deploys. */
  #stored(type: string, name: string): unknown {
    for (const template of this.#templates) {
      for (const [id, { Type, Properties }] of Object.entries(template.resources)) {
        if (Type !== 'AWS::SSM::Parameter' || this.nameOf(template, id) !== name) continue;
        const value = String(this.resolve(template, Properties?.Value));
        return type.includes('List<') ? value.split(',') : value;
      }
    }
    throw new Error(`No stack deploys the parameter ${name}`);
  }

  #attribute(template: StackTemplate, [logicalId, attribute]: [string, string]): string {
    const arn = this.arnOf(template, logicalId);
    switch (attribute) {
      case 'StreamArn':
        return `${arn}/stream/2026-11-21T00:00:00.000`;
      case 'Arn':
      case 'TopicArn':
        // The ARN of a log group, as CloudFormation hands it out, stands for its streams.
        return resourceOf(template, logicalId).Type === 'AWS::Logs::LogGroup' ? `${arn}:*` : arn;
      case 'QueueName':
      case 'TopicName':
        return this.nameOf(template, logicalId);
      default:
        throw new Error(
          `The attribute ${attribute} of ${logicalId} is not known here: teach it to deployed-parts.ts`,
        );
    }
  }
}

function resourceOf(template: StackTemplate, logicalId: string): RawResource {
  const resource = template.resources[logicalId];
  if (resource === undefined) throw new Error(`${template.stackName} has no resource ${logicalId}`);
  return resource;
}
