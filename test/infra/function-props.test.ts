import { Size, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { SecurityGroup, SubnetType, Vpc } from 'aws-cdk-lib/aws-ec2';
import { Key } from 'aws-cdk-lib/aws-kms';
import { ApplicationLogLevel, Architecture, LayerVersion, Runtime, Tracing } from 'aws-cdk-lib/aws-lambda';
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';
import {
  AwsSolutionsChecks,
  HIPAASecurityChecks,
  NIST80053R5Checks,
  PCIDSS321Checks,
  ServerlessChecks,
} from 'cdk-nag';
import { describe, expect, test } from 'vitest';
import { BUNDLING, lambdaEntry } from '../../lib/functions/service-function.ts';
import {
  InboxConsumer,
  type InboxConsumerProps,
  Mailroom,
  type MailroomFunctionProps,
  type MailroomProps,
  type PassedFunctionProps,
  ServiceFunction,
} from '../../lib/index.ts';
import { refusalsOf } from './refusals.ts';
import { type Resource, resources, testApp } from './synth.ts';

const entry = lambdaEntry('example/inventory/handler');

function mailroomStack(props: (stack: Stack) => MailroomProps = () => ({})) {
  const stack = new Stack(testApp(), 'Test');
  return { stack, mailroom: new Mailroom(stack, 'Mailroom', { sources: ['shop'], ...props(stack) }) };
}

function consumerStack(props: (stack: Stack) => Partial<InboxConsumerProps>) {
  const { stack, mailroom } = mailroomStack();
  const made = new InboxConsumer(stack, 'Consumer', {
    mailroom,
    name: 'one',
    service: 'payments',
    events: [{ source: 'shop', type: 'OrderPlaced' }],
    entry,
    ...props(stack),
  });
  return { stack, made, template: Template.fromStack(stack) };
}

const consumerWith = (functionProps: (stack: Stack) => PassedFunctionProps) =>
  consumerStack((stack) => ({ function: functionProps(stack) }));

function properties(template: Template, type: string, id: RegExp) {
  const found = Object.entries(resources(template, type)).filter(([logicalId]) => id.test(logicalId));
  const [first] = found;
  if (first === undefined || found.length > 1) throw new Error(`${found.length} resources of ${type}`);
  return (first[1] as Resource).Properties;
}

const functionOf = (template: Template) => properties(template, 'AWS::Lambda::Function', /^ConsumerFunction/);

describe('function of a consumer', () => {
  test('put its function into a VPC, and let Lambda attach it', () => {
    const { template } = consumerWith((stack) => {
      const vpc = new Vpc(stack, 'Vpc');
      const group = new SecurityGroup(stack, 'Group', { vpc });
      return { vpc, vpcSubnets: { subnetType: SubnetType.PRIVATE_WITH_EGRESS }, securityGroups: [group] };
    });
    const { VpcConfig } = functionOf(template);
    expect(VpcConfig.SubnetIds).toHaveLength(2);
    expect(VpcConfig.SecurityGroupIds).toEqual([
      { 'Fn::GetAtt': [expect.stringMatching(/^Group/), 'GroupId'] },
    ]);
    const grants = properties(template, 'AWS::IAM::ManagedPolicy', /^ConsumerFunctionRole/);
    expect(grants.PolicyDocument.Statement).toContainEqual(
      expect.objectContaining({
        Action: expect.arrayContaining(['ec2:CreateNetworkInterface']),
        Resource: '*',
      }),
    );
  });

  test('choose runtime, architecture, layers, storage, tracing and the key of its environment', () => {
    const { template } = consumerWith((stack) => ({
      runtime: Runtime.NODEJS_22_X,
      architecture: Architecture.X86_64,
      layers: [LayerVersion.fromLayerVersionArn(stack, 'Layer', 'arn:aws:lambda:x:1:layer:certificates:1')],
      ephemeralStorageSize: Size.gibibytes(1),
      tracing: Tracing.ACTIVE,
      environmentEncryption: new Key(stack, 'Key'),
    }));
    expect(functionOf(template)).toMatchObject({
      Runtime: 'nodejs22.x',
      Architectures: ['x86_64'],
      Layers: ['arn:aws:lambda:x:1:layer:certificates:1'],
      EphemeralStorage: { Size: 1_024 },
      TracingConfig: { Mode: 'Active' },
      KmsKeyArn: { 'Fn::GetAtt': [expect.stringMatching(/^Key/), 'Arn'] },
    });
  });

  test('choose its log levels, and the retention of its log group or another log group', () => {
    const { template } = consumerWith(() => ({
      applicationLogLevelV2: ApplicationLogLevel.WARN,
      logRetention: RetentionDays.ONE_YEAR,
    }));
    expect(functionOf(template).LoggingConfig).toMatchObject({
      ApplicationLogLevel: 'WARN',
      LogFormat: 'JSON',
    });
    const logs = (found: Template) => resources(found, 'AWS::Logs::LogGroup');
    expect(properties(template, 'AWS::Logs::LogGroup', /^ConsumerFunctionLogs/).RetentionInDays).toBe(365);
    expect(resources(template, 'Custom::LogRetention')).toEqual({});

    const other = consumerWith((stack) => ({ logGroup: new LogGroup(stack, 'Ours') }));
    expect(functionOf(other.template).LoggingConfig.LogGroup).toEqual({
      Ref: expect.stringMatching(/^Ours/),
    });
    expect(Object.keys(logs(other.template)).filter((id) => id.startsWith('Consumer'))).toEqual([]);
  });

  test('may reserve concurrency, which then limits the queue, too', () => {
    const { template } = consumerWith(() => ({ reservedConcurrentExecutions: 20 }));
    expect(functionOf(template).ReservedConcurrentExecutions).toBe(20);
    expect(properties(template, 'AWS::Lambda::EventSourceMapping', /^Consumer/).ScalingConfig).toEqual({
      MaximumConcurrency: 20,
    });
    expect(() => consumerWith(() => ({ reservedConcurrentExecutions: 1 }))).toThrow(
      'reservedConcurrentExecutions is 1, but must be at least 2',
    );
  });

  test('settings of function that cannot be passed on are refused', async () => {
    const cases: Readonly<Record<string, object>> = {
      'its role': { role: {} },
      'its memory': { memorySize: 128 },
      'an event source': { events: [] },
      'an old runtime': { runtime: Runtime.NODEJS_18_X },
      'a retention of an existing log group': { logGroup: {}, logRetention: RetentionDays.ONE_DAY },
    };
    await expect(refusalsOf(cases, (functionProps) => consumerWith(() => functionProps))).toMatchFileSnapshot(
      '__snapshots__/refused-function-props.txt',
    );
  });
});

test('an alias of a function that the consumer makes has its provisioned concurrency, and processes the queue', () => {
  const { made, template } = consumerStack(() => ({
    function: { alias: { aliasName: 'live', provisionedConcurrentExecutions: 2 } },
  }));
  expect(properties(template, 'AWS::Lambda::Alias', /^Consumer/)).toMatchObject({
    Name: 'live',
    ProvisionedConcurrencyConfig: { ProvisionedConcurrentExecutions: 2 },
  });
  const { FunctionName } = properties(template, 'AWS::Lambda::EventSourceMapping', /^Consumer/);
  expect(JSON.stringify(FunctionName)).toContain('":live"');
  expect(made.alias?.aliasName).toBe('live');
  const entryText = properties(template, 'AWS::SSM::Parameter', /^ConsumerDirectoryEntry/).Value;
  expect(JSON.stringify(entryText)).toContain('\\"alias\\":\\"live\\"');
});

describe("functionProps of a Mailroom's own functions", () => {
  const withVpc = (stack: Stack): MailroomProps => ({
    audit: {},
    heartbeat: {},
    functionProps: { vpc: new Vpc(stack, 'Vpc'), architecture: Architecture.X86_64 },
  });

  test('put all four into a VPC, and not those of consumers', () => {
    const { stack, mailroom } = mailroomStack(withVpc);
    const api = new ServiceFunction(stack, 'Api', { entry, service: 'shop' });
    mailroom.addProducer(api, { service: 'shop', publishes: [{ source: 'shop', type: 'OrderPlaced' }] });
    const found = Object.entries(resources(Template.fromStack(stack), 'AWS::Lambda::Function'));
    const inVpc = found.filter(([, { Properties }]) => Properties.VpcConfig !== undefined);
    expect(inVpc.map(([id]) => id.replace(/[0-9A-F]{8}$/, '')).sort()).toEqual([
      'MailroomAuditFunction',
      'MailroomHeartbeatFunction',
      'MailroomRelayStream',
      'MailroomRelaySweep',
    ]);
    for (const [, { Properties }] of inVpc) expect(Properties.Architectures).toEqual(['x86_64']);
  });

  test.each(['logGroup', 'reservedConcurrentExecutions', 'filesystem'])(
    'functionProps are refused with %s, which four functions cannot share',
    (name) => {
      const functionProps = { [name]: name === 'logGroup' ? {} : 5 } as MailroomFunctionProps;
      expect(() => mailroomStack(() => ({ functionProps }))).toThrow(
        `functionProps.${name} is not a property.`,
      );
    },
  );

  test.each([AwsSolutionsChecks, NIST80053R5Checks, PCIDSS321Checks, HIPAASecurityChecks, ServerlessChecks])(
    'leave nothing more unexplained in a VPC than outside: %o',
    (Checks) => {
      const findings = (props: (stack: Stack) => MailroomProps) => {
        const { stack, mailroom } = mailroomStack(props);
        const { violations } = new Checks(stack).validateScope(stack);
        const isOwn = (path = '') => path.startsWith(`${mailroom.node.path}/`);
        return violations
          .filter((found) => found.violatingResources.some(({ constructPath }) => isOwn(constructPath)))
          .map(({ ruleName }) => ruleName);
      };
      expect(findings(withVpc)).toEqual(findings(() => ({ audit: {}, heartbeat: {} })));
    },
  );

  test('explain to cdk-nag only the rules that they do not follow', () => {
    const reasons = (props: (stack: Stack) => MailroomProps) =>
      JSON.stringify(
        mailroomStack(props)
          .mailroom.node.findAll()
          .map(({ node }) => node.metadata),
      );
    expect(reasons(() => ({}))).toContain('LambdaInsideVPC');
    expect(reasons(withVpc)).not.toContain('LambdaInsideVPC');
  });
});

test("bundling sets no target: the CDK derives esbuild's target from the runtime", () => {
  expect(BUNDLING).not.toHaveProperty('target');
});
