import { describe, expect, test } from 'vitest';
import { awsDeclarations } from '../../../cli/deployment/aws-declarations.ts';
import { type DeclaredResource, UNKNOWN } from '../../../cli/deployment/declared-resources.ts';
import { cloudFormationInMemory, type StackInMemory } from './support/cloudformation-in-memory.ts';
import { deployedOrderSystem } from './support/deployed-order-system.ts';
import { mailroomInMemory } from './support/mailroom-in-memory.ts';
import { fine } from './support/why-rig.ts';

const orderSystem = deployedOrderSystem();

async function declared(stack: string): Promise<readonly DeclaredResource[]> {
  return (await awsDeclarations(orderSystem.client, orderSystem.directory).of({ stack })) ?? [];
}

describe('the stacks of the order system', () => {
  test('declare the resources of every part', async () => {
    const counted = async (stack: string) => {
      const counts: Record<string, number> = {};
      for (const { part } of await declared(stack)) counts[part] = (counts[part] ?? 0) + 1;
      return counts;
    };
    expect(await counted('mailroom-prod')).toEqual({
      audit: 7,
      bus: 2,
      directory: 8,
      heartbeat: 7,
      'stream relay': 7,
      sweep: 7,
      table: 1,
    });
    expect(await counted('mailroom-prod-orders')).toEqual({ 'order-status': 15, producer: 3 });
    expect(await counted('mailroom-prod-payments')).toEqual({ payments: 15 });
    expect(await counted('mailroom-prod-bank')).toEqual({});
    expect(await counted('mailroom-prod-operations')).toEqual({ alarms: 86 });
  });

  test('have no unknown value except the stream of the table', async () => {
    const unknown: string[] = [];
    for (const stack of Object.keys(orderSystem.stacks))
      for (const { logicalId, properties } of await declared(stack))
        unknown.push(...unknownIn(properties).map((path) => `${logicalId}${path}`));
    expect(unknown.filter((path) => !/Grants/.test(path))).toEqual([
      expect.stringMatching(/^MailroomRelayStreamDynamoDBEventSource\w+\.EventSourceArn$/),
    ]);
  });

  test('declare a queue, its policy and its mapping with the names of the deployed resources', async () => {
    const { consumers } = orderSystem.directory;
    const payments = consumers.find(({ name }) => name === 'payments');
    const found = await declared('mailroom-prod-payments');
    const of = (type: string) => found.filter((resource) => resource.type === type);
    const queueArn = `arn:aws:sqs:eu-central-1:111122223333:${payments?.queue.split('/').at(-1)}`;
    expect(of('AWS::Lambda::EventSourceMapping')).toMatchObject([
      { properties: { EventSourceArn: queueArn, FunctionName: payments?.function } },
    ]);
    expect(of('AWS::SQS::QueuePolicy').map(({ properties }) => properties.Queues)).toContainEqual([
      payments?.queue,
    ]);
    expect(of('AWS::Events::Rule')).toMatchObject([
      { properties: { EventBusName: orderSystem.directory.mailroom.bus } },
    ]);
  });

  test('declare more than a parameter of the directory can hold', async () => {
    const bytes = async (stack: string) =>
      JSON.stringify((await declared(stack)).map(({ properties }) => properties)).length;
    expect(await bytes('mailroom-prod-payments')).toBeGreaterThan(8_192);
    expect(await bytes('mailroom-prod')).toBeGreaterThan(2 * 8_192);
  });

  test('are read once, and the exports once for all', async () => {
    const { client, sent } = cloudFormationInMemory(orderSystem.stacks, orderSystem.exports);
    const declarations = awsDeclarations(client, orderSystem.directory);
    const stacks = ['mailroom-prod', 'mailroom-prod-payments', 'mailroom-prod-orders'];
    await Promise.all([...stacks, ...stacks].map((stack) => declarations.of({ stack })));
    expect(sent.toSorted()).toEqual([
      ...stacks.map(() => 'DescribeStacksCommand'),
      ...stacks.map(() => 'GetTemplateCommand'),
      'ListExportsCommand',
      ...stacks.map(() => 'ListStackResourcesCommand'),
    ]);
  });
});

describe('a template that was written by hand', () => {
  const { directory } = mailroomInMemory([fine]);
  const { mailroom } = directory;

  const of = async (template: unknown, stack: Partial<StackInMemory> = {}) => {
    const body = typeof template === 'string' ? template : JSON.stringify(template);
    const { client } = cloudFormationInMemory({
      [mailroom.stack]: { body, physicalIds: { Stream: mailroom.streamFunction }, ...stack },
    });
    return await awsDeclarations(client, directory).of(mailroom);
  };
  const Stream = { Type: 'AWS::Lambda::Function' };
  const propertiesOf = async (Properties: unknown, more: object = {}, stack: Partial<StackInMemory> = {}) =>
    (await of({ Resources: { Stream: { ...Stream, Properties } }, ...more }, stack))?.[0]?.properties;

  test('of no stack is not there', async () => {
    const { client } = cloudFormationInMemory({});
    expect(await awsDeclarations(client, directory).of(mailroom)).toBeUndefined();
  });

  test.each(['Resources:\n  Queue:\n    Type: AWS::SQS::Queue\n', '"{}"', '[]', 'null', ''])(
    'as %j is not compared',
    async (body) => {
      await expect(of(body)).rejects.toMatchObject({ code: 'NOT_COMPARED' });
    },
  );

  test.each(['UPDATE_IN_PROGRESS', 'UPDATE_ROLLBACK_IN_PROGRESS', 'CREATE_IN_PROGRESS'])(
    'is not compared in the status %s',
    async (StackStatus) => {
      await expect(of({}, { described: { StackStatus } as never })).rejects.toMatchObject({
        code: 'NOT_COMPARED',
        message: expect.stringContaining(StackStatus),
      });
    },
  );

  test('is compared while replaced resources are deleted', async () => {
    expect(await of({}, { described: { StackStatus: 'UPDATE_COMPLETE_CLEANUP_IN_PROGRESS' } })).toEqual([]);
  });

  test.each([
    [{}],
    [{ Resources: null, Conditions: null, Parameters: 'text' }],
    [{ Resources: { Stream: null } }],
    [{ Resources: { Stream: { Type: 7 } } }],
  ])('as %j declares nothing', async (template) => {
    expect(await of(template)).toEqual([]);
  });

  test.each([[null], ['text'], [7], [{ Ref: 'Nothing' }]])('has no properties in %j', async (Properties) => {
    expect(await propertiesOf(Properties)).toEqual({});
  });

  test('has parameters: texts, lists, those of Parameter Store, and secrets', async () => {
    const Parameters = {
      Stage: { Type: 'String' },
      Zones: { Type: 'CommaDelimitedList' },
      Image: { Type: 'AWS::SSM::Parameter::Value<String>' },
      Unread: { Type: 'AWS::SSM::Parameter::Value<String>' },
      Secret: { Type: 'String', NoEcho: true },
    };
    const described = {
      Parameters: [
        { ParameterKey: 'Stage', ParameterValue: 'prod' },
        { ParameterKey: 'Zones', ParameterValue: 'a, b' },
        { ParameterKey: 'Image', ParameterValue: '/image', ResolvedValue: 'image-7' },
        { ParameterKey: 'Unread', ParameterValue: '/unread' },
        { ParameterKey: 'Secret', ParameterValue: '****' },
      ],
    };
    const written = Object.fromEntries(
      [...Object.keys(Parameters), 'AWS::NotificationARNs'].map((name) => [name, { Ref: name }]),
    );
    expect(await propertiesOf(written, { Parameters }, { described })).toEqual({
      Stage: 'prod',
      Zones: ['a', 'b'],
      Image: 'image-7',
      Unread: UNKNOWN,
      Secret: UNKNOWN,
      'AWS::NotificationARNs': UNKNOWN,
    });
  });

  test('has no attribute that a physical id does not show', async () => {
    const physicalIds = { Stream: mailroom.streamFunction, Table: 'things', Role: 'role', Odd: 'odd' };
    const Resources = {
      Table: { Type: 'AWS::DynamoDB::Table' },
      Role: { Type: 'AWS::IAM::Role', Properties: { Path: { 'Fn::GetAtt': ['Role', 'Arn'] } } },
      Odd: { Type: 'toString' },
      Stream: {
        ...Stream,
        Properties: {
          Table: { 'Fn::GetAtt': ['Table', 'Arn'] },
          Stream: { 'Fn::GetAtt': ['Table', 'StreamArn'] },
          Role: { 'Fn::GetAtt': ['Role', 'Arn'] },
          Odd: { 'Fn::GetAtt': ['Odd', 'Arn'] },
          Prototype: { 'Fn::GetAtt': ['Table', 'constructor'] },
        },
      },
    };
    expect(await of({ Resources }, { physicalIds })).toMatchObject([
      {
        properties: {
          Table: 'arn:aws:dynamodb:eu-central-1:111122223333:table/things',
          Stream: UNKNOWN,
          Role: UNKNOWN,
          Odd: UNKNOWN,
          Prototype: UNKNOWN,
        },
      },
    ]);
  });

  test('leaves out the resources of another Mailroom, and those of none', async () => {
    const tagged = (path: string) => [{ Key: 'mailroom', Value: path }];
    const Resources = {
      Stream: { ...Stream, Properties: { Tags: tagged('Own') } },
      Own: { Type: 'AWS::SQS::Queue', Properties: { Tags: tagged('Own') } },
      Other: { Type: 'AWS::SQS::Queue', Properties: { Tags: tagged('Other') } },
      Plain: { Type: 'AWS::SQS::Queue' },
      OwnPolicy: { Type: 'AWS::SQS::QueuePolicy', Properties: { Queues: [{ Ref: 'Own' }] } },
      OtherPolicy: { Type: 'AWS::SQS::QueuePolicy', Properties: { Queues: [{ Ref: 'Other' }] } },
      Invoke: {
        Type: 'AWS::Lambda::EventInvokeConfig',
        // biome-ignore lint/suspicious/noTemplateCurlyInString: the language of Fn::Sub
        Properties: { FunctionName: { 'Fn::Sub': '${Stream}' } },
      },
    };
    const physicalIds = Object.fromEntries(Object.keys(Resources).map((id) => [id, id]));
    const found = await of(
      { Resources },
      { physicalIds: { ...physicalIds, Stream: mailroom.streamFunction } },
    );
    expect(found?.map(({ logicalId, part }) => [logicalId, part])).toEqual([
      ['Stream', 'stream relay'],
      ['Own', 'mailroom'],
      ['OwnPolicy', 'mailroom'],
      ['Invoke', 'stream relay'],
    ]);
  });

  test('has the resources of an entry without tags, and what refers to them', async () => {
    const [consumer] = directory.consumers;
    const physicalIds = {
      Function: consumer?.function ?? '',
      Queue: consumer?.queue ?? '',
      Rule: `bus|${consumer?.rule}`,
      Mapping: 'uuid',
      Policy: 'policy',
      Other: 'bus|other',
    };
    const Resources = {
      Function: Stream,
      Queue: { Type: 'AWS::SQS::Queue' },
      Rule: { Type: 'AWS::Events::Rule' },
      Mapping: { Type: 'AWS::Lambda::EventSourceMapping', Properties: { FunctionName: { Ref: 'Function' } } },
      Policy: { Type: 'AWS::SQS::QueuePolicy', Properties: { Queues: [{ Ref: 'Queue' }] } },
      Other: { Type: 'AWS::Events::Rule' },
    };
    const body = JSON.stringify({ Resources });
    const stack = consumer?.stack ?? '';
    const { client } = cloudFormationInMemory({ [stack]: { body, physicalIds } });
    const found = await awsDeclarations(client, directory).of({ stack });
    expect(found?.map(({ logicalId }) => logicalId)).toEqual([
      'Function',
      'Queue',
      'Rule',
      'Mapping',
      'Policy',
    ]);
    expect(new Set(found?.map(({ part }) => part))).toEqual(new Set([consumer?.name]));
  });

  test('of 1,000 resources is read whole, over all pages', async () => {
    const Resources: Record<string, unknown> = { Stream };
    for (let n = 0; n < 999; n += 1)
      Resources[`Invoke${n}`] = {
        Type: 'AWS::Lambda::EventInvokeConfig',
        Properties: { FunctionName: { Ref: 'Stream' } },
      };
    const physicalIds = Object.fromEntries(Object.keys(Resources).map((id) => [id, id]));
    const found = await of(
      { Resources },
      { physicalIds: { ...physicalIds, Stream: mailroom.streamFunction } },
    );
    expect(found).toHaveLength(1_000);
  });
});

/** The paths of the unknown values. */
function unknownIn(value: unknown, path = ''): string[] {
  if (value === UNKNOWN) return [path];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => unknownIn(inner, `${path}.${name}`));
}
