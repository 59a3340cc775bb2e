import { Duration, Stack } from 'aws-cdk-lib';
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions';
import { SubnetType, Vpc } from 'aws-cdk-lib/aws-ec2';
import { Key } from 'aws-cdk-lib/aws-kms';
import { Tracing } from 'aws-cdk-lib/aws-lambda';
import {
  AuroraPostgresEngineVersion,
  ClusterInstance,
  DatabaseCluster,
  DatabaseClusterEngine,
  DatabaseInstance,
  DatabaseInstanceEngine,
  DatabaseProxy,
  PostgresEngineVersion,
  ProxyTarget,
} from 'aws-cdk-lib/aws-rds';
import { Secret } from 'aws-cdk-lib/aws-secretsmanager';
import { Topic } from 'aws-cdk-lib/aws-sns';
import {
  AwsSolutionsChecks,
  HIPAASecurityChecks,
  NIST80053R5Checks,
  PCIDSS321Checks,
  ServerlessChecks,
} from 'cdk-nag';
import { describe, expect, test } from 'vitest';
import { readPostgresRelayConfig } from '../../lambdas/runtime/postgres/postgres-settings.ts';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import {
  InboxConsumer,
  Mailroom,
  MailroomBus,
  type MailroomDatabase,
  PostgresMailroom,
  type PostgresMailroomProps,
  ServiceFunction,
} from '../../lib/index.ts';
import { deployedParts } from './access/deployed-parts.ts';
import { askOf, type Principal, rolesOf } from './access/permissions.ts';
import { resourceLines } from './resource-lines.ts';
import { resources, testApp } from './synth.ts';

const OrderPlaced = { source: 'orders', type: 'OrderPlaced' };
const engine = DatabaseClusterEngine.auroraPostgres({ version: AuroraPostgresEngineVersion.VER_16_6 });

/** The database in its own stack, as most have it, and the Mailroom in another. */
function system(
  props: Partial<PostgresMailroomProps> | ((stack: Stack, vpc: Vpc) => Partial<PostgresMailroomProps>) = {},
  settings: { readonly iamAuthentication?: boolean; readonly subnets?: SubnetType } = {},
) {
  const app = testApp();
  const data = new Stack(app, 'Data');
  const subnetType = settings.subnets ?? SubnetType.PRIVATE_WITH_EGRESS;
  const vpc = new Vpc(data, 'Vpc', {
    natGateways: subnetType === SubnetType.PRIVATE_WITH_EGRESS ? 1 : 0,
    subnetConfiguration: [
      { name: 'public', subnetType: SubnetType.PUBLIC },
      { name: 'data', subnetType },
    ],
  });
  const cluster = new DatabaseCluster(data, 'Cluster', {
    engine,
    vpc,
    vpcSubnets: { subnetType },
    writer: ClusterInstance.serverlessV2('Writer'),
    iamAuthentication: settings.iamAuthentication ?? true,
  });
  const stack = new Stack(app, 'Events');
  const mailroom = new PostgresMailroom(stack, 'Mailroom', {
    database: { server: cluster, vpc, databaseName: 'shop' },
    ...(typeof props === 'function' ? props(stack, vpc) : props),
  });
  const shop = new Stack(app, 'Shop');
  const producer = (id = 'Api', inVpc = true) =>
    new ServiceFunction(shop, id, {
      entry: lambdaEntry('example/inventory/handler'),
      service: 'orders',
      ...(inVpc && { functionProps: { vpc } }),
    });
  return { app, data, stack, shop, vpc, cluster, mailroom, producer };
}

const existing = (stack: Stack, more: object = {}): MailroomDatabase => ({
  secret: new Secret(stack, 'Secret'),
  user: 'mailroom_all',
  databaseName: 'shop',
  ...more,
});

const functionsOf = (stack: Stack) =>
  Object.values(resources(Template.fromStack(stack), 'AWS::Lambda::Function'));

/** Every statement of the roles of a stack, as JSON. */
const statements = (stack: Stack): string[] =>
  Object.values(resources(Template.fromStack(stack), 'AWS::IAM::ManagedPolicy')).flatMap(({ Properties }) =>
    Properties.PolicyDocument.Statement.map((statement: unknown) => JSON.stringify(statement)),
  );

const alarmTopics = (stack: Stack) => ({
  topics: { page: new Topic(stack, 'Page'), ticket: new Topic(stack, 'Ticket') },
});

describe('the relay of a PostgreSQL database', () => {
  test('runs each minute for longer than a minute, with the settings that its handler reads', () => {
    const { stack, mailroom, producer } = system({ services: ['billing'] });
    mailroom.addProducer(producer(), { service: 'orders', publishes: [OrderPlaced] });
    const [relay, ...others] = functionsOf(stack);
    expect(others).toEqual([]);
    expect(relay?.Properties).toMatchObject({ Timeout: 90, MemorySize: 256 });
    expect(relay?.Properties.ReservedConcurrentExecutions).toBeUndefined();
    const variables = relay?.Properties.Environment.Variables;
    const config = readPostgresRelayConfig({ ...variables, MAILROOM_TABLE: 'name', MAILROOM_BUS: 'bus' });
    expect(config).toMatchObject({ sources: ['billing', 'orders'], pollMs: 500, claimLeaseMs: 30_000 });
    Template.fromStack(stack).hasResourceProperties('AWS::Events::Rule', {
      ScheduleExpression: 'rate(1 minute)',
      Targets: [Match.objectLike({ RetryPolicy: Match.objectLike({ MaximumRetryAttempts: 0 }) })],
    });
  });

  test('may log in as one user, publish declared sources on its bus, and nothing else', () => {
    const { stack } = system({ services: ['billing'] });
    const all = statements(stack).map((text) => JSON.parse(text));
    expect(
      all
        .flatMap(({ Action }) => Action)
        .filter((action) => !action.startsWith('ec2:'))
        .sort(),
    ).toEqual(['events:PutEvents', 'logs:CreateLogStream', 'logs:PutLogEvents', 'rds-db:connect']);
    const connect = all.find(({ Action }) => Action === 'rds-db:connect');
    expect(JSON.stringify(connect.Resource)).toMatch(
      /:dbuser:.*DbClusterResourceId.*\/mailroom_relay_login"/i,
    );
    const put = all.find(({ Action }) => Action === 'events:PutEvents');
    expect(put.Condition['ForAllValues:StringEquals']).toEqual({ 'events:source': ['billing'] });
  });

  test('is let into the database by one rule, and out by HTTPS alone', () => {
    const { stack } = system();
    const template = Template.fromStack(stack);
    template.resourceCountIs('AWS::EC2::SecurityGroupIngress', 1);
    const [group] = Object.values(resources(template, 'AWS::EC2::SecurityGroup'));
    expect(group?.Properties.SecurityGroupIngress).toBeUndefined();
    const egress = group?.Properties.SecurityGroupEgress;
    expect(egress.map(({ ToPort }: { ToPort: number }) => ToPort)).toEqual([443]);
    template.resourceCountIs('AWS::EC2::SecurityGroupEgress', 1);
    template.resourceCountIs('AWS::EC2::VPCEndpoint', 0);
  });

  test('gets interface endpoints only on request, that of Secrets Manager only with a secret', () => {
    const services = (stack: Stack) =>
      Object.values(resources(Template.fromStack(stack), 'AWS::EC2::VPCEndpoint')).map(({ Properties }) =>
        JSON.stringify(Properties.ServiceName).replace(/.*\.(\w+)"\]*.*/, '$1'),
      );
    expect(services(system({ relay: { createEndpoints: true } }).stack)).toEqual(['events']);
    const { stack } = system((stack, vpc) => ({
      relay: { createEndpoints: true },
      database: existing(stack, { vpc }),
    }));
    expect(services(stack).sort()).toEqual(['events', 'secretsmanager']);
  });

  test('warns in isolated subnets, from which only an endpoint leads to the bus', () => {
    const isolated = { subnets: SubnetType.PRIVATE_ISOLATED };
    const warnings = (stack: Stack) =>
      Annotations.fromStack(stack).findWarning('*', Match.stringLikeRegexp('relayWithoutRoute'));
    expect(warnings(system({}, isolated).stack)).toHaveLength(1);
    expect(warnings(system({ relay: { createEndpoints: true } }, isolated).stack)).toEqual([]);
    expect(warnings(system().stack)).toEqual([]);
  });

  test('reads the secret of an existing database, and needs no VPC', () => {
    const { stack } = system((stack) => ({ database: existing(stack, { host: 'db.example.com' }) }));
    const [relay] = functionsOf(stack);
    expect(relay?.Properties.VpcConfig).toBeUndefined();
    const postgres = JSON.stringify(relay?.Properties.Environment.Variables.MAILROOM_POSTGRES);
    expect(postgres).toContain('db.example.com');
    expect(postgres).toContain('secretArn');
    expect(statements(stack).join()).toContain('secretsmanager:GetSecretValue');
    expect(statements(stack).join()).not.toContain('rds-db:connect');
  });

  test('connects through a proxy, and to an instance', () => {
    const { stack, cluster, vpc, data } = system();
    const proxy = new DatabaseProxy(data, 'Proxy', {
      proxyTarget: ProxyTarget.fromCluster(cluster),
      secrets: cluster.secret ? [cluster.secret] : [],
      vpc,
      iamAuth: true,
    });
    const instance = new DatabaseInstance(data, 'Instance', {
      engine: DatabaseInstanceEngine.postgres({ version: PostgresEngineVersion.VER_16_6 }),
      vpc,
      iamAuthentication: true,
    });
    new PostgresMailroom(stack, 'ByProxy', {
      database: { server: cluster, proxy, vpc, databaseName: 'shop' },
    });
    new PostgresMailroom(stack, 'OnInstance', { database: { server: instance, vpc, databaseName: 'shop' } });
    const hosts = functionsOf(stack).map(({ Properties }) =>
      JSON.stringify(Properties.Environment.Variables.MAILROOM_POSTGRES),
    );
    expect(hosts).toEqual([
      expect.stringMatching(/Cluster.*EndpointAddress/),
      expect.stringMatching(/Proxy.*Endpoint/),
      expect.stringMatching(/Instance.*EndpointAddress/),
    ]);
  });
});

describe('a service of a PostgreSQL database', () => {
  test('writes as its own login, with its own way to the database, after the relay', () => {
    const { mailroom, producer, shop, data } = system();
    mailroom.addProducer(producer(), { service: 'orders', publishes: [OrderPlaced] });
    const [api] = functionsOf(shop);
    expect(api?.Properties.Environment.Variables).toMatchObject({
      MAILROOM_SERVICE: 'orders',
      MAILROOM_PUBLISHES: '["OrderPlaced"]',
      NODE_EXTRA_CA_CERTS: '/var/runtime/ca-cert.pem',
    });
    expect(statements(shop).join()).toMatch(/rds-db:connect.*\/orders/);
    expect(statements(shop).join()).not.toContain('events:PutEvents');
    Template.fromStack(shop).resourceCountIs('AWS::EC2::SecurityGroupIngress', 1);
    expect(shop.dependencies.map(({ stackName }) => stackName).sort()).toEqual(['Data', 'Events']);
    expect(data.dependencies).toEqual([]);
  });

  test('consumes by an InboxConsumer on the same bus, whose Mailroom may be in another stack', () => {
    const { app, vpc, cluster } = system();
    const core = new Stack(app, 'Core');
    const mailroom = new Mailroom(core, 'Mailroom', { sources: ['orders'] });
    const stack = new Stack(app, 'Bridge');
    const postgres = new PostgresMailroom(stack, 'Postgres', {
      database: { server: cluster, vpc, databaseName: 'shop' },
      bus: mailroom.bus,
      services: ['orders'],
    });
    const consumer = new InboxConsumer(stack, 'Payments', {
      mailroom,
      name: 'payments',
      service: 'payments',
      events: [OrderPlaced],
      entry: lambdaEntry('example/inventory/handler'),
      function: { vpc },
    });
    const publishes = [{ source: 'payments', type: 'Paid' }];
    postgres.grantConsumer(consumer.function, { service: 'payments', publishes });
    const [relay, payments] = functionsOf(stack);
    expect(relay?.Properties.Environment.Variables.MAILROOM_SOURCES).toBe('["orders","payments"]');
    expect(payments?.Properties.Environment.Variables).toMatchObject({
      MAILROOM_CONSUMER: 'payments',
      MAILROOM_POSTGRES: expect.anything(),
    });
    expect(core.dependencies).toEqual([]);
    const entry = Object.entries(resources(Template.fromStack(stack), 'AWS::SSM::Parameter')).find(([id]) =>
      id.includes('DirectoryEntry'),
    );
    expect(JSON.stringify(entry)).toContain('\\"inbox\\":\\"postgres\\"');
    const [bus] = Object.values(resources(Template.fromStack(core), 'AWS::Events::EventBus'));
    expect(JSON.stringify(bus?.Properties.Policy)).toMatch(/:role\/Bridge-Postgres-Relay-FunctionRole-/);
    expect(JSON.stringify(bus?.Properties.Policy)).not.toContain('aws:PrincipalTag');
  });
});

describe('on a shared bus', () => {
  function onSharedBus() {
    const app = testApp();
    const bus = new MailroomBus(new Stack(app, 'Shared'), 'Bus', { eventBusName: 'shop' });
    const stack = new Stack(app, 'Invoices');
    const database = { secret: new Secret(stack, 'Login'), user: 'shop', databaseName: 'shop' };
    new PostgresMailroom(stack, 'Postgres', { database, bus, services: ['invoices'] });
    return { app, bus };
  }

  test('the relay alone publishes its services, and no others', async () => {
    const { app, bus } = onSharedBus();
    new Mailroom(new Stack(app, 'Orders'), 'Mailroom', { bus, sources: ['orders'] });
    const parts = deployedParts(app);
    const relay = rolesOf(parts).find(({ name }) => name === 'Invoices/PostgresRelayFunctionRole');
    const other = rolesOf(parts).find(({ name }) => name === 'Orders/MailroomRelaySweepRole');
    const resource = parts.find(({ arn }) => arn.endsWith('event-bus/shop'))?.arn ?? '';
    const put = (who: typeof relay, source: string) =>
      askOf(parts)(who as Principal, { action: 'events:PutEvents', resource, sources: [source] });
    expect(await put(relay, 'invoices')).toBe('allow');
    expect(await put(relay, 'orders')).toBe('DENY');
    expect(await put(other, 'orders')).toBe('allow');
    expect(await put(other, 'invoices')).toBe('DENY');
  });

  test('no Mailroom can publish its services, too', () => {
    const { app, bus } = onSharedBus();
    const stack = new Stack(app, 'Orders');
    expect(() => new Mailroom(stack, 'Second', { bus, sources: ['invoices'] })).toThrow(
      'Invoices/Postgres already publishes it on the same bus',
    );
  });
});

describe('refused at synth', () => {
  const refused = (props: Parameters<typeof system>[0], settings?: Parameters<typeof system>[1]) => {
    try {
      system(props, settings);
    } catch (error) {
      return String(error);
    }
    return 'nothing';
  };

  test('a cluster without IAM authentication, and a proxy without it', () => {
    expect(refused({}, { iamAuthentication: false })).toMatch(/Data\/Cluster.*iamAuthentication: true/);
    const { cluster, data, vpc, stack } = system();
    const secrets = cluster.secret ? [cluster.secret] : [];
    const proxy = new DatabaseProxy(data, 'Proxy', {
      proxyTarget: ProxyTarget.fromCluster(cluster),
      secrets,
      vpc,
    });
    const database = { server: cluster, proxy, vpc, databaseName: 'shop' };
    expect(() => new PostgresMailroom(stack, 'Other', { database })).toThrow(/Data\/Proxy.*iamAuth: true/);
  });

  test('a token, or an invalid name, where a policy needs the name of a login', () => {
    expect(refused({ relay: { user: 'Relay-1' } })).toContain('relay.user is "Relay-1"');
    const token = (stack: Stack) => new Secret(stack, 'Login').secretArn;
    expect(refused((stack) => ({ relay: { user: token(stack) } }))).toContain('known at deployment only');
    expect(refused((stack) => ({ database: existing(stack, { databaseName: token(stack) }) }))).toContain(
      'database.databaseName is known at deployment only',
    );
  });

  test('a relay in a public subnet', () => {
    expect(refused({ relay: { vpcSubnets: { subnetType: SubnetType.PUBLIC } } })).toContain('public subnet');
  });

  test.each([
    { relay: { timeout: Duration.seconds(60) }, says: 'relay.timeout is 1 minute' },
    { relay: { poll: Duration.millis(10) }, says: 'relay.poll is 10 millis' },
    { relay: { claimLease: Duration.seconds(12) }, says: 'relay.claimLease is 12000 ms' },
  ])('$says', ({ relay, says }) => {
    expect(refused({ relay })).toContain(says);
  });

  test('a producer outside of the VPC, or with a secret beside IAM', () => {
    const { mailroom, producer, shop } = system();
    const props = { service: 'orders', publishes: [OrderPlaced] };
    expect(() => mailroom.addProducer(producer('Outside', false), props)).toThrow(/outside of the VPC/);
    const secret = new Secret(shop, 'Secret');
    expect(() => mailroom.addProducer(producer('Both'), { ...props, secret })).toThrow(/secret is given/);
  });
});

describe('the resources', () => {
  const whole = () => {
    const made = system((stack) => ({
      alarms: alarmTopics(stack),
      relay: { createEndpoints: true },
      encryptionKey: new Key(stack, 'Key'),
      tracing: Tracing.ACTIVE,
    }));
    made.mailroom.addProducer(made.producer(), { service: 'orders', publishes: [OrderPlaced] });
    return made;
  };

  test('are those that were reviewed, a line each', async () => {
    const lines = `${resourceLines(Template.fromStack(whole().stack))}\n`;
    await expect(lines).toMatchFileSnapshot('__snapshots__/postgres.resources.txt');
  });

  test('include an alarm for each way in which the relay fails, on the metrics that it sends', () => {
    const alarms = Object.values(resources(Template.fromStack(whole().stack), 'AWS::CloudWatch::Alarm'));
    expect(alarms.map(({ Properties }) => Properties.MetricName).sort()).toEqual([
      'BusFailures',
      'DeadEvents',
      'Errors',
      'OldestPendingAge',
      'SweepFailures',
      'UndeclaredEvents',
    ]);
    for (const { Properties } of alarms) expect(Properties.AlarmActions).toHaveLength(1);
  });

  test.each([AwsSolutionsChecks, NIST80053R5Checks, PCIDSS321Checks, HIPAASecurityChecks, ServerlessChecks])(
    'leave nothing unexplained to %o',
    (Checks) => {
      const { mailroom } = whole();
      const { violations } = new Checks(mailroom).validateScope(mailroom);
      expect(violations).toEqual([]);
    },
  );
});
