import {
  type CloudFormationClient,
  DescribeStacksCommand,
  GetTemplateCommand,
  paginateListExports,
  paginateListStackResources,
  type Stack,
} from '@aws-sdk/client-cloudformation';
import { errorCode, MailroomError } from '../../lambdas/runtime/base/errors.ts';
import type { Directory, EntryStack } from '../../lambdas/runtime/operations/directory.ts';
import { attributeOf, type StackPlace } from './declared-attributes.ts';
import { partsOf, type StackResource } from './declared-parts.ts';
import { type Declarations, type DeclaredResource, UNKNOWN } from './declared-resources.ts';
import { type Template, valueResolver } from './template-values.ts';

/** A template as CloudFormation returns it. Anyone can have written it, so no member is sure. */
interface StackTemplate extends Template {
  readonly Parameters?: Readonly<
    Record<string, { readonly Type?: unknown; readonly NoEcho?: unknown } | undefined>
  >;
  readonly Resources?: Readonly<Record<string, TemplateResource | undefined>>;
}

interface TemplateResource {
  readonly Type?: unknown;
  readonly Properties?: Readonly<Record<string, unknown>>;
}

/** A change of the stack is under way. While CloudFormation only deletes replaced resources, its template is the deployed one. */
const IN_PROGRESS = /(?<!_CLEANUP)_IN_PROGRESS$/;

const DELETED = /^DELETE_COMPLETE$/;

/** The declarations port on AWS. */
export function awsDeclarations(cloudFormation: CloudFormationClient, directory: Directory): Declarations {
  const known = new Map<string, Promise<readonly DeclaredResource[] | undefined>>();
  let exported: Promise<ReadonlyMap<string, string>> | undefined;
  const exports = () => {
    exported ??= readExports(cloudFormation);
    return exported;
  };
  return {
    of: (stack) => {
      const reading = known.get(stack.stack) ?? readStack(cloudFormation, directory, stack, exports);
      known.set(stack.stack, reading);
      return reading;
    },
  };
}

async function readStack(
  client: CloudFormationClient,
  directory: Directory,
  entry: EntryStack,
  exports: () => Promise<ReadonlyMap<string, string>>,
): Promise<readonly DeclaredResource[] | undefined> {
  const described = await describeStack(client, entry.stack);
  if (described === undefined) return undefined;
  if (IN_PROGRESS.test(described.StackStatus ?? '')) {
    throw new MailroomError(
      'NOT_COMPARED',
      `The stack ${entry.stack} is being changed (${described.StackStatus}), so its resources were not compared with its template. Wait for its deployment, then ` +
        'run the command again.',
    );
  }
  const [{ TemplateBody = '' }, physicalIds] = await Promise.all([
    client.send(new GetTemplateCommand({ StackName: entry.stack, TemplateStage: 'Processed' })),
    readPhysicalIds(client, entry.stack),
  ]);
  const template = parseTemplate(entry.stack, TemplateBody);
  // The exports of an account fill many pages, and most stacks import none.
  const imports = TemplateBody.includes('Fn::ImportValue') ? await exports() : new Map<string, string>();
  const resources = resolvedResources(template, described, physicalIds, imports);
  const parts = partsOf(resources, directory, entry.stack);
  return resources.flatMap(({ written, ...resource }) => {
    const part = parts.get(resource.logicalId);
    return part === undefined ? [] : [{ ...resource, stack: entry, part }];
  });
}

/** The resources of a template that CloudFormation has created, with their references resolved. */
function resolvedResources(
  template: StackTemplate,
  stack: Stack,
  physicalIds: ReadonlyMap<string, string>,
  imports: ReadonlyMap<string, string>,
): StackResource[] {
  const { Resources = {} } = template;
  const place = placeOf(stack);
  const values = new Map([...pseudoParameters(stack, place), ...parameterValues(template, stack)]);
  const typeOf = (logicalId: string) => String(Object(Resources[logicalId]).Type ?? '');
  const resolve = valueResolver(template, {
    reference: (name) => values.get(name) ?? physicalIds.get(name) ?? UNKNOWN,
    attribute: (logicalId, name) => {
      const physicalId = physicalIds.get(logicalId);
      if (physicalId === undefined) return UNKNOWN;
      const { Path: path } = Object(Object(Resources[logicalId]).Properties);
      return attributeOf({ type: typeOf(logicalId), physicalId, path }, name, place);
    },
    imported: (name) => imports.get(name) ?? UNKNOWN,
  });
  return Object.entries(Resources).flatMap(([logicalId, declared]) => {
    const physicalId = physicalIds.get(logicalId);
    if (physicalId === undefined) return [];
    const written = Object(declared).Properties ?? {};
    const properties = resolve(written);
    const isKnown = typeof properties === 'object' && properties !== null;
    return [
      {
        type: typeOf(logicalId),
        logicalId,
        physicalId,
        written,
        properties: isKnown ? { ...properties } : {},
      },
    ];
  });
}

function pseudoParameters({ StackName, StackId }: Stack, place: StackPlace): (readonly [string, unknown])[] {
  const { partition, region, account } = place;
  return [
    ['AWS::AccountId', account],
    ['AWS::Partition', partition],
    ['AWS::Region', region],
    ['AWS::StackId', StackId],
    ['AWS::StackName', StackName],
    ['AWS::URLSuffix', partition === 'aws-cn' ? 'amazonaws.com.cn' : 'amazonaws.com'],
  ];
}

/** The values of the parameters: a list of texts for a parameter of a list type, unknown for a secret. */
function parameterValues(
  { Parameters = {} }: StackTemplate,
  { Parameters: given = [] }: Stack,
): (readonly [string, unknown])[] {
  return given.map(({ ParameterKey = '', ParameterValue, ResolvedValue }) => {
    const { Type, NoEcho } = Parameters[ParameterKey] ?? {};
    const type = String(Type ?? 'String');
    // The value of a parameter of an SSM type is the name of the parameter in Parameter Store.
    const value = type.startsWith('AWS::SSM::Parameter::Value') ? ResolvedValue : ParameterValue;
    if (value === undefined || NoEcho === true || NoEcho === 'true') return [ParameterKey, UNKNOWN];
    return [ParameterKey, /List/.test(type) ? value.split(',').map((one) => one.trim()) : value];
  });
}

function placeOf({ StackId = '' }: Stack): StackPlace {
  const [, partition = '', , region = '', account = ''] = StackId.split(':');
  return { partition, region, account };
}

function parseTemplate(stack: string, body: string): StackTemplate {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    // Handled below: YAML, which the CDK never deploys.
  }
  if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) {
    const { Parameters, Conditions, Resources }: StackTemplate = parsed;
    return { Parameters: Object(Parameters), Conditions: Object(Conditions), Resources: Object(Resources) };
  }
  throw new MailroomError(
    'NOT_COMPARED',
    `The template of the stack ${stack} is not a JSON object, so its resources were not compared with it. Deploy the stack with the CDK, which deploys JSON.`,
  );
}

/** Describes a stack; `undefined` if there is none of this name. */
async function describeStack(client: CloudFormationClient, StackName: string): Promise<Stack | undefined> {
  try {
    const { Stacks = [] } = await client.send(new DescribeStacksCommand({ StackName }));
    return Stacks[0];
  } catch (error) {
    // The only request that CloudFormation refuses as invalid is one for a stack that does not exist (API reference, DescribeStacks).
    if (errorCode(error) === 'ValidationError') return undefined;
    throw error;
  }
}

/** The physical ids of the resources that a stack has created, by logical id. */
async function readPhysicalIds(
  client: CloudFormationClient,
  StackName: string,
): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for await (const { StackResourceSummaries = [] } of paginateListStackResources({ client }, { StackName }))
    for (const { LogicalResourceId, PhysicalResourceId, ResourceStatus } of StackResourceSummaries)
      if (LogicalResourceId && PhysicalResourceId && !DELETED.test(ResourceStatus ?? ''))
        found.set(LogicalResourceId, PhysicalResourceId);
  return found;
}

async function readExports(client: CloudFormationClient): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for await (const { Exports = [] } of paginateListExports({ client }, {}))
    for (const { Name = '', Value = '' } of Exports) found.set(Name, Value);
  return found;
}
