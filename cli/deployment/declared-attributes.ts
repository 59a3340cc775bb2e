import { UNKNOWN } from './declared-resources.ts';

/** The place of a stack, from its id `arn:<partition>:cloudformation:<region>:<account>:stack/<name>/<uuid>`. */
export interface StackPlace {
  readonly partition: string;
  readonly region: string;
  readonly account: string;
}

/** A resource whose attributes can be computed from its physical id. */
export interface IdentifiedResource {
  readonly type: string;
  readonly physicalId: string;
  /** Its property `Path` as it is written, which a role's ARN contains. */
  readonly path: unknown;
}

type ResourceAttributes = Readonly<Record<string, unknown>>;

/** The attributes of `Fn::GetAtt` by type (CloudFormation template reference, "Return values"). Those of other types are unknown. */
const ATTRIBUTES: Readonly<
  Record<
    string,
    (resource: IdentifiedResource, arn: (service: string, id: string) => string) => ResourceAttributes
  >
> = {
  'AWS::CloudWatch::Alarm': ({ physicalId }, arn) => ({ Arn: arn('cloudwatch', `alarm:${physicalId}`) }),
  'AWS::CloudWatch::CompositeAlarm': ({ physicalId }, arn) => ({
    Arn: physicalId.startsWith('arn:') ? physicalId : arn('cloudwatch', `alarm:${physicalId}`),
  }),
  'AWS::DynamoDB::GlobalTable': table,
  'AWS::DynamoDB::Table': table,
  'AWS::Events::EventBus': ({ physicalId }, arn) => ({
    Arn: arn('events', `event-bus/${physicalId}`),
    Name: physicalId,
  }),
  // The physical id of a rule on a custom bus is `bus|rule`.
  'AWS::Events::Rule': ({ physicalId }, arn) => ({
    Arn: arn('events', `rule/${physicalId.replace('|', '/')}`),
  }),
  'AWS::IAM::Role': ({ physicalId, path = '/' }, arn) => ({
    Arn: typeof path === 'string' ? arn('iam', `role${path}${physicalId}`) : UNKNOWN,
  }),
  'AWS::Kinesis::Stream': ({ physicalId }, arn) => ({ Arn: arn('kinesis', `stream/${physicalId}`) }),
  'AWS::KMS::Key': ({ physicalId }, arn) => ({ Arn: arn('kms', `key/${physicalId}`), KeyId: physicalId }),
  'AWS::Lambda::Alias': ({ physicalId }) => ({ AliasArn: physicalId }),
  'AWS::Lambda::Function': ({ physicalId }, arn) => ({ Arn: arn('lambda', `function:${physicalId}`) }),
  'AWS::Lambda::Version': ({ physicalId }) => ({
    FunctionArn: physicalId,
    Version: physicalId.split(':').at(-1),
  }),
  'AWS::Logs::LogGroup': ({ physicalId }, arn) => ({ Arn: arn('logs', `log-group:${physicalId}:*`) }),
  'AWS::SNS::Topic': ({ physicalId }) => ({
    TopicArn: physicalId,
    TopicName: physicalId.split(':').at(-1),
  }),
  // The physical id of a queue is its URL.
  'AWS::SQS::Queue': ({ physicalId }, arn) => {
    const name = physicalId.split('/').at(-1) ?? '';
    return { Arn: arn('sqs', name), QueueName: name, QueueUrl: physicalId };
  },
};

/** The ARN of a table's stream contains the time of its creation, so only its table knows it. */
function table(
  { physicalId }: IdentifiedResource,
  arn: (service: string, id: string) => string,
): ResourceAttributes {
  return { Arn: arn('dynamodb', `table/${physicalId}`) };
}

/** Returns an attribute of a resource as `Fn::GetAtt` does; {@link UNKNOWN} if its physical id does not show it. */
export function attributeOf(resource: IdentifiedResource, name: string, place: StackPlace): unknown {
  const { partition, region, account } = place;
  const attributes = Object.hasOwn(ATTRIBUTES, resource.type) ? ATTRIBUTES[resource.type] : undefined;
  const arn = (service: string, id: string) =>
    ['arn', partition, service, service === 'iam' ? '' : region, account, id].join(':');
  const found = attributes?.(resource, arn) ?? {};
  return Object.hasOwn(found, name) ? found[name] : UNKNOWN;
}
