import { Stack } from 'aws-cdk-lib';
import { Annotations, Match, type Template } from 'aws-cdk-lib/assertions';
import { type IKey, Key } from 'aws-cdk-lib/aws-kms';
import { beforeAll, describe, expect, test } from 'vitest';
import { Mailroom } from '../../lib/index.ts';
import { type DeployedPart, deployedParts } from './access/deployed-parts.ts';
import { resources, STACKS, synthStage, testApp } from './synth.ts';

const KEY_ARN = 'arn:aws:kms:eu-west-1:111122223333:key/11111111-2222-3333-4444-555555555555';

describe('with its own key, prod', () => {
  const { app, templates } = synthStage('prod');
  let parts: DeployedPart[];
  beforeAll(() => {
    parts = deployedParts(app);
  });
  const properties = (type: string) =>
    parts.filter((part) => part.type === type && part.stack !== 'Operations').map((part) => part.properties);

  test('encrypts table, bus, archive, queues and logs', () => {
    const [table] = Object.values(resources(templates.Mailroom, 'AWS::DynamoDB::GlobalTable'));
    expect(table?.Properties).toMatchObject({
      SSESpecification: { SSEEnabled: true, SSEType: 'KMS' },
      Replicas: [{ SSESpecification: { KMSMasterKeyId: expect.anything() } }],
    });
    for (const [type, property, count] of [
      ['AWS::Events::EventBus', 'KmsKeyIdentifier', 1],
      ['AWS::Events::Archive', 'KmsKeyIdentifier', 1],
      ['AWS::SQS::Queue', 'KmsMasterKeyId', 13],
      ['AWS::Logs::LogGroup', 'KmsKeyId', 10],
    ] as const) {
      const found = properties(type);
      expect(found, type).toHaveLength(count);
      for (const each of found) expect(each, type).toHaveProperty(property);
    }
  });

  test('lets no role use the key for more than its rows and messages', () => {
    const uses = properties('AWS::IAM::ManagedPolicy').flatMap(({ Roles, PolicyDocument }) =>
      PolicyDocument.Statement.filter(({ Action }: { Action: string | string[] }) =>
        [Action].flat().some((action) => action.startsWith('kms:')),
      ).map((statement: { Action: string | string[]; Resource: unknown; Condition?: unknown }) => ({
        role: Roles[0],
        ...statement,
      })),
    );
    expect(uses.length).toBeGreaterThan(8);
    for (const { Resource, Action } of uses) {
      expect(Resource).not.toBe('*');
      expect([Action].flat().join()).not.toContain('*');
    }
    const unbound = uses.filter(({ Condition }) => Condition === undefined);
    // Queues: a consumer decrypts its messages, and the stream mapping encrypts what it leaves.
    expect(unbound.map(({ Action }) => [Action].flat().sort())).toEqual(
      expect.arrayContaining([['kms:Decrypt'], ['kms:Decrypt', 'kms:GenerateDataKey']]),
    );
    expect(unbound).toHaveLength(5);
    const bound = JSON.stringify(uses.filter(({ Condition }) => Condition !== undefined));
    expect(bound.match(/sqs\.eu-west-1\.amazonaws\.com/g)).toHaveLength(2); // the sweep and the audit look at dead letters
  });

  test('lets EventBridge and CloudWatch Logs use the key, for this account only', () => {
    const [key] = Object.values(resources(templates.Mailroom, 'AWS::KMS::Key'));
    const byService = key?.Properties.KeyPolicy.Statement.filter(
      ({ Principal }: { Principal: { Service?: string } }) => Principal.Service !== undefined,
    );
    expect(byService).toHaveLength(2);
    for (const { Condition } of byService) expect(JSON.stringify(Condition)).toContain('AWS::AccountId');
  });
});

test('a policy of a role is within what IAM takes: 6,144 characters', () => {
  const { app } = synthStage('prod');
  const sizes = deployedParts(app)
    .filter(({ type }) => type === 'AWS::IAM::ManagedPolicy')
    .map(({ properties }) => JSON.stringify(properties.PolicyDocument).length);
  expect(sizes.length).toBeGreaterThanOrEqual(9);
  expect(Math.max(...sizes)).toBeLessThan(6_144);
});

describe('an imported key', () => {
  const importing = (makeKey: (stack: Stack) => IKey) => {
    const stack = new Stack(testApp(), 'Core');
    new Mailroom(stack, 'Mailroom', { encryptionKey: makeKey(stack) });
    return stack;
  };

  test('an imported key causes a warning with the statements that its policy needs', () => {
    const stack = importing((scope) => Key.fromKeyArn(scope, 'Key', KEY_ARN));
    Annotations.fromStack(stack).hasWarning(
      '/Core/Mailroom',
      Match.stringLikeRegexp('Core/Key .* is imported.*MailroomEvents.*MailroomLogs'),
    );
  });

  test('a key of another account must also let the functions of this one use it', () => {
    const env = { account: '111111111111', region: 'eu-west-1' };
    const stack = new Stack(testApp(), 'Core', { env });
    const arn = 'arn:aws:kms:eu-west-1:222222222222:key/00000000-0000-0000-0000-000000000000';
    new Mailroom(stack, 'Mailroom', { encryptionKey: Key.fromKeyArn(stack, 'Key', arn) });
    Annotations.fromStack(stack).hasWarning('/Core/Mailroom', Match.stringLikeRegexp('MailroomFunctions'));
  });

  test('a key of another region is refused', () => {
    const env = { account: '111111111111', region: 'eu-west-1' };
    const stack = new Stack(testApp(), 'Core', { env });
    const arn = 'arn:aws:kms:us-east-1:111111111111:key/00000000-0000-0000-0000-000000000000';
    expect(
      () => new Mailroom(stack, 'Mailroom', { encryptionKey: Key.fromKeyArn(stack, 'Key', arn) }),
    ).toThrow(
      'encryptionKey is a key in us-east-1, but a service uses keys of its own region only, here eu-west-1.',
    );
  });

  test('a key of the app causes no warning', () => {
    const stack = importing((scope) => new Key(scope, 'Key'));
    expect(Annotations.fromStack(stack).findWarning('*', Match.stringLikeRegexp('is imported'))).toEqual([]);
  });
});

test('a Mailroom without encryption creates no key', () => {
  const { templates } = synthStage('dev');
  for (const stack of STACKS.filter((name) => name !== 'Operations'))
    expect(JSON.stringify(templates[stack].toJSON())).not.toMatch(/kms/i);
});

test('a Mailroom is tagged, with its services and consumers', () => {
  const { templates } = synthStage('dev');
  const tagsOf = (template: Template, type: string) =>
    Object.values(resources(template, type)).map(({ Properties }) =>
      Object.fromEntries(
        (Properties.Tags ?? []).map(({ Key, Value }: { Key: string; Value: string }) => [Key, Value]),
      ),
    );
  expect(tagsOf(templates.Mailroom, 'AWS::Lambda::Function')).toEqual(
    Array(4).fill({ mailroom: 'Mailroom/Mailroom' }),
  );
  expect(tagsOf(templates.Payments, 'AWS::SQS::Queue')).toEqual(
    Array(3).fill({
      mailroom: 'Mailroom/Mailroom',
      'mailroom:consumer': 'payments',
      'mailroom:service': 'payments',
    }),
  );
  for (const stack of ['Orders', 'Payments'] as const)
    for (const tags of tagsOf(templates[stack], 'AWS::IAM::Role')) expect(tags).toHaveProperty('mailroom');
});
