import { runSimulation } from '@cloud-copilot/iam-simulate';
import { ACCOUNT, type DeployedPart, REGION } from './deployed-parts.ts';

/** A principal that calls AWS, and the policies that are attached to them. */
export interface Principal {
  readonly name: string;
  /** The ARN of the role. */
  readonly arn: string;
  readonly policies: readonly object[];
  /** The tags of the role. @default none */
  readonly tags?: Readonly<Record<string, string>>;
  /** The AWS service that calls for the resource with this ARN, such as a rule. @default none: a role calls */
  readonly service?: string;
}

/** `allow`, `-` when nothing allows it, `DENY` when a policy forbids it whatever else allows it. */
export type Verdict = 'allow' | '-' | 'DENY';

/** An action that a principal requests. */
interface Question {
  readonly action: string;
  /** The ARN of what it is done to. */
  readonly resource: string;
  /** The partition key of the rows that it touches. @default the request names no key */
  readonly key?: string | undefined;
  /** The AWS service that uses a key in the caller's name. @default none: the caller itself does */
  readonly via?: string | undefined;
  /** The sources of the entries of a `PutEvents` call; none, for a call that names none. @default one of the order system's */
  readonly sources?: readonly string[] | undefined;
}

/** True if a principal may act on a deployed resource, by the policies on both sides. */
export type Ask = (who: Principal, question: Question) => Promise<Verdict>;

const VERDICTS: Readonly<Record<string, Verdict>> = {
  Allowed: 'allow',
  ImplicitlyDenied: '-',
  ExplicitlyDenied: 'DENY',
};

/**
 * Asks a policy simulator.
 *
 * @param parts - whose resource policies count; none, to ask for the policies of the caller alone
 */
export function askOf(parts: readonly DeployedPart[]): Ask {
  const resourcePolicies = new Map(parts.flatMap((part) => resourcePolicyOf(part, parts)));
  return async (who, { action, resource, key, via, sources = ['orders'] }) => {
    const answer = await runSimulation(
      {
        request: {
          // A caller is a session of a role; `aws:PrincipalArn` stays the role's own ARN.
          principal:
            who.service ??
            who.arn
              .replace(/^arn:aws:iam::(\d+):role\/(?:.*\/)?/, 'arn:aws:sts::$1:assumed-role/')
              .concat('/deployment'),
          action,
          resource: { resource, accountId: ACCOUNT },
          contextVariables: {
            ...(who.service === undefined
              ? { 'aws:PrincipalArn': who.arn, 'aws:PrincipalAccount': ACCOUNT }
              : { 'aws:SourceArn': who.arn, 'aws:SourceAccount': ACCOUNT }),
            'aws:PrincipalIsAWSService': String(who.service !== undefined),
            'aws:SecureTransport': 'true',
            ...principalTags(who),
            ...(via === undefined ? {} : { 'kms:ViaService': `${via}.${REGION}.amazonaws.com` }),
            ...(key === undefined ? {} : { 'dynamodb:LeadingKeys': [key] }),
            ...(action === 'events:PutEvents' && sources.length > 0 ? { 'events:source': [...sources] } : {}),
          },
        },
        identityPolicies: who.policies.map((policy, index) => ({ name: `policy-${index}`, policy })),
        serviceControlPolicies: [],
        resourceControlPolicies: [],
        resourcePolicy: resourcePolicies.get(resource),
      },
      {},
    );
    const verdict = answer.resultType === 'error' ? undefined : VERDICTS[answer.overallResult];
    if (verdict === undefined)
      throw new Error(`${action} on ${resource} cannot be judged: ${JSON.stringify(answer)}`);
    return verdict;
  };
}

function principalTags({ tags = {} }: Principal): Record<string, string> {
  return Object.fromEntries(Object.entries(tags).map(([key, value]) => [`aws:PrincipalTag/${key}`, value]));
}

/** Every role that an app deploys, for any principal. */
export function rolesOf(parts: readonly DeployedPart[]): Principal[] {
  const attached = parts.filter(
    ({ type }) => type === 'AWS::IAM::Policy' || type === 'AWS::IAM::ManagedPolicy',
  );
  return parts
    .filter(({ type }) => type === 'AWS::IAM::Role')
    .map(({ stack, id, name, arn, properties }) => {
      const { ManagedPolicyArns = [], Policies = [], Tags = [] } = properties;
      if (ManagedPolicyArns.length > 0) throw new Error(`${name} has policies that no template holds`);
      const own = Policies.map((policy: { PolicyDocument: object }) => policy.PolicyDocument);
      const others = attached.filter((policy) => policy.properties.Roles?.includes(name));
      return {
        name: `${stack}/${id}`,
        arn,
        policies: [...own, ...others.map((policy) => policy.properties.PolicyDocument)],
        tags: Object.fromEntries(Tags.map(({ Key, Value }: { Key: string; Value: string }) => [Key, Value])),
      };
    });
}

/** A principal whose own policies allow everything. */
export function administrator(role = 'Administrator'): Principal {
  const everything = { Version: '2012-10-17', Statement: [{ Effect: 'Allow', Action: '*', Resource: '*' }] };
  return { name: 'an administrator', arn: `arn:aws:iam::${ACCOUNT}:role/${role}`, policies: [everything] };
}

function resourcePolicyOf(part: DeployedPart, parts: readonly DeployedPart[]): [string, object][] {
  switch (part.type) {
    case 'AWS::DynamoDB::GlobalTable': {
      const policy = part.properties.Replicas[0].ResourcePolicy?.PolicyDocument;
      return policy === undefined ? [] : [[part.arn, policy]];
    }
    case 'AWS::SQS::QueuePolicy': {
      const { Queues, PolicyDocument } = part.properties;
      return parts
        .filter(
          ({ type, name }) =>
            type === 'AWS::SQS::Queue' && Queues.some((url: string) => url.endsWith(`/${name}`)),
        )
        .map(({ arn }) => [arn, PolicyDocument]);
    }
    case 'AWS::KMS::Key':
      return [[part.arn, part.properties.KeyPolicy]];
    case 'AWS::Events::EventBus':
      return busPolicyOf(part, parts);
    case 'AWS::SNS::TopicPolicy':
      return part.properties.Topics.map((arn: string) => [arn, part.properties.PolicyDocument]);
    default:
      return [];
  }
}

/** The policy of a bus, with the statements that Mailrooms of any stack add to it. */
function busPolicyOf({ arn, properties }: DeployedPart, parts: readonly DeployedPart[]): [string, object][] {
  const added = parts
    .filter(
      ({ type, properties: { Statement } }) =>
        type === 'AWS::Events::EventBusPolicy' && Statement.Resource === arn,
    )
    .map((policy) => policy.properties.Statement);
  const { Version = '2012-10-17', Statement = [] } = properties.Policy ?? {};
  const statements = [...Statement, ...added];
  return statements.length === 0 ? [] : [[arn, { Version, Statement: statements }]];
}
