import { readdirSync, readFileSync } from 'node:fs';
import { parse } from '@cdktf/hcl2json';
import { list, type Properties, statement } from './parts.ts';

/** The blocks of a configuration: by their kind, then by their labels. */
export interface Configuration {
  readonly resource: Readonly<Record<string, Readonly<Record<string, readonly [Properties]>>>>;
  readonly data: Readonly<Record<string, Readonly<Record<string, readonly [Properties]>>>>;
  readonly locals: Properties;
  readonly variable: Readonly<Record<string, readonly [Properties]>>;
}

/** Reads the files of a configuration. @param folder - with `/` at its end */
export async function readTerraform(folder: string): Promise<Configuration> {
  const read: Configuration = { resource: {}, data: {}, locals: {}, variable: {} };
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.tf'))) {
    const blocks = await parse(file, readFileSync(folder + file, 'utf8'));
    for (const [type, byName] of Object.entries<Properties>(blocks.resource ?? {}))
      Object.assign(read.resource, { [type]: { ...read.resource[type], ...byName } });
    for (const [type, byName] of Object.entries<Properties>(blocks.data ?? {}))
      Object.assign(read.data, { [type]: { ...read.data[type], ...byName } });
    for (const locals of list<Properties>(blocks.locals ?? [])) Object.assign(read.locals, locals);
    Object.assign(read.variable, blocks.variable);
  }
  return read;
}

/** The end of a part's name, by the type of its resource. Types that are not here are properties of another part. */
const SUFFIXES: Readonly<Record<string, string>> = {
  aws_dynamodb_table: '',
  aws_cloudwatch_event_bus: '',
  aws_cloudwatch_log_group: 'Logs',
  aws_iam_role: 'Role',
  aws_iam_role_policy: 'Grants',
  aws_lambda_function: '',
  aws_lambda_function_event_invoke_config: 'Invoke',
  aws_lambda_permission: 'Permission',
  aws_lambda_event_source_mapping: 'Mapping',
  aws_sqs_queue: '',
  aws_sqs_queue_policy: 'Policy',
  aws_cloudwatch_event_rule: '',
  aws_ssm_parameter: '',
};

/** The name of a part in the notation of the other templates: `SweepRole` of `aws_iam_role.sweep`. */
export function partName(type: string, name: string): string {
  const pascal = name.replaceAll(/(?:^|_)(\w)/g, (_, first: string) => first.toUpperCase());
  return pascal + (SUFFIXES[type] ?? '');
}

/** Addresses of everything that a resource waits for, directly and by references. */
export function appliedBefore(
  { resource, data, locals }: Configuration,
  address: string,
): ReadonlySet<string> {
  const found = new Set<string>();
  const look = (one: string) => {
    const [kind = '', type = '', name = ''] = one.split('.');
    const block =
      kind === 'data' ? data[type]?.[name] : kind === 'local' ? locals[type] : resource[kind]?.[type];
    for (const [next] of JSON.stringify(block ?? '').matchAll(/(?:data\.|local\.)?\w+\.\w+/g)) {
      if (found.has(next)) continue;
      found.add(next);
      look(next);
    }
  };
  look(address);
  return found;
}

/** Evaluates the few expressions that the configuration uses. */
export class Expressions {
  readonly #configuration: Configuration;

  constructor(configuration: Configuration) {
    this.#configuration = configuration;
  }

  /** A resource with every expression in it evaluated; empty if there is none of that type. */
  block(type: string, name: string): Properties {
    const [found] = this.#configuration.resource[type]?.[name] ?? [];
    return (this.value(found ?? {}) ?? {}) as Properties;
  }

  value(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((one) => this.value(one));
    if (typeof value === 'object' && value !== null)
      return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, this.value(one)]));
    if (typeof value !== 'string') return value;
    const [, whole] = /^\$\{([^{}]*)\}$/.exec(value) ?? [];
    if (whole !== undefined) return this.#expression(whole);
    return value
      .replaceAll(/\$\{([^}]*)\}/g, (_, expression: string) => String(this.#expression(expression)))
      .replaceAll(/(\{\w+Logs\.Arn\}):\*/g, '$1'); // CloudFormation's ARN of a log group ends so.
  }

  #expression(expression: string): unknown {
    const [, encoded] = /^jsonencode\((.*)\)$/.exec(expression) ?? [];
    if (encoded !== undefined)
      return JSON.stringify(encoded.startsWith('[') ? JSON.parse(encoded) : this.#expression(encoded));
    const [first = '', second = '', third = '', fourth] = expression.split('.');
    if (first === 'local') return this.value(this.#configuration.locals[second]);
    if (expression === 'var.name') return '{AWS::StackName}';
    if (first === 'var') return this.#configuration.variable[second]?.[0].default;
    if (second === 'aws_arn') return `{AWS::${ARN_PARTS[fourth ?? '']}}`;
    if (second === 'aws_iam_policy_document') return this.#policy(third);
    if (SUFFIXES[first] === undefined) return expression; // what is not compared, such as the archives of code
    return `{${partName(first, second)}${ATTRIBUTES[third] ?? ''}}`;
  }

  #policy(name: string): Properties {
    const [document] = this.#configuration.data.aws_iam_policy_document?.[name] ?? [{ statement: [] }];
    const statements = this.value(document.statement) as Properties[];
    return {
      Statement: statements.map(({ sid, effect = 'Allow', actions, resources, principals, condition = [] }) =>
        statement({
          Sid: sid,
          Effect: effect,
          Principal: principals && Object.fromEntries(principals.map(principalOf)),
          Action: actions,
          Resource: resources,
          ...(condition.length > 0 && { Condition: conditionOf(condition) }),
        }),
      ),
    };
  }
}

const ARN_PARTS: Readonly<Record<string, string>> = {
  partition: 'Partition',
  region: 'Region',
  account: 'AccountId',
};
const ATTRIBUTES: Readonly<Record<string, string>> = { arn: '.Arn', stream_arn: '.StreamArn' };

const principalOf = ({ type, identifiers }: Properties) => [
  type,
  identifiers.length === 1 ? identifiers[0] : identifiers,
];

function conditionOf(conditions: readonly Properties[]): Properties {
  const operators: Record<string, Properties> = {};
  for (const { test, variable, values } of conditions)
    operators[test] = { ...operators[test], [variable]: values };
  return operators;
}
