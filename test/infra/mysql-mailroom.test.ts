import { Duration, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { Connections, SecurityGroup, Vpc } from 'aws-cdk-lib/aws-ec2';
import { Key } from 'aws-cdk-lib/aws-kms';
import {
  AuroraMysqlEngineVersion,
  AuroraPostgresEngineVersion,
  ClusterInstance,
  DatabaseCluster,
  DatabaseClusterEngine,
  DatabaseInstance,
  DatabaseInstanceEngine,
  type IClusterEngine,
  type IInstanceEngine,
  MariaDbEngineVersion,
  MysqlEngineVersion,
  SqlServerEngineVersion,
} from 'aws-cdk-lib/aws-rds';
import { Secret } from 'aws-cdk-lib/aws-secretsmanager';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { AwsSolutionsChecks, NIST80053R5Checks } from 'cdk-nag';
import { describe, expect, test } from 'vitest';
import { readMysqlRelayConfig } from '../../lambdas/runtime/mysql/mysql-settings.ts';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import {
  InboxConsumer,
  Mailroom,
  MysqlMailroom,
  type MysqlMailroomProps,
  PostgresMailroom,
  ServiceFunction,
} from '../../lib/index.ts';
import { resourceLines } from './resource-lines.ts';
import { resources, testApp } from './synth.ts';

const OrderPlaced = { source: 'orders', type: 'OrderPlaced' };
const { auroraMysql, auroraPostgres } = DatabaseClusterEngine;
const AURORA_3 = auroraMysql({ version: AuroraMysqlEngineVersion.VER_3_08_0 });
const AURORA_2 = auroraMysql({ version: AuroraMysqlEngineVersion.VER_2_11_1 });

/** The network and the databases in their own stack, and that of a Mailroom. */
function place() {
  const app = testApp();
  const data = new Stack(app, 'Data');
  const vpc = new Vpc(data, 'Vpc', { natGateways: 1 });
  const cluster = (engine: IClusterEngine, id = 'Cluster') =>
    new DatabaseCluster(data, id, {
      engine,
      vpc,
      writer: ClusterInstance.serverlessV2('Writer'),
      iamAuthentication: true,
    });
  const instance = (engine: IInstanceEngine) =>
    new DatabaseInstance(data, 'Instance', { engine, vpc, iamAuthentication: true });
  return { app, data, vpc, cluster, instance, stack: new Stack(app, 'Events') };
}

function system(props: (stack: Stack) => Partial<MysqlMailroomProps> = () => ({}), engine = AURORA_3) {
  const made = place();
  const { stack, vpc } = made;
  const database = { server: made.cluster(engine), vpc, databaseName: 'shop' };
  const mailroom = new MysqlMailroom(stack, 'Mailroom', { database, ...props(stack) });
  return { ...made, database, mailroom };
}

const functionsOf = (stack: Stack) =>
  Object.values(resources(Template.fromStack(stack), 'AWS::Lambda::Function'));

const statements = (stack: Stack): string =>
  JSON.stringify(resources(Template.fromStack(stack), 'AWS::IAM::ManagedPolicy'));

const consumerOf = (stack: Stack, mailroom: Mailroom, vpc: Vpc) =>
  new InboxConsumer(stack, 'Payments', {
    mailroom,
    name: 'payments',
    service: 'payments',
    events: [OrderPlaced],
    entry: lambdaEntry('example/inventory/handler'),
    function: { vpc },
  });

describe('the relay of a MySQL database', () => {
  test('has the settings that its handler reads, logs in as one user, and reaches the port of MySQL', () => {
    const { stack } = system(() => ({
      services: ['billing'],
      relay: { claim: 'token', orderBy: 'aggregate' },
    }));
    const [relay, ...others] = functionsOf(stack);
    expect(others).toEqual([]);
    const variables = relay?.Properties.Environment.Variables;
    const config = readMysqlRelayConfig({ ...variables, MAILROOM_TABLE: 'name', MAILROOM_BUS: 'bus' });
    expect(config).toMatchObject({
      sources: ['billing'],
      pollMs: 500,
      claimLeaseMs: 30_000,
      claim: 'token',
      orderBy: 'aggregate',
    });
    expect(variables.MAILROOM_POSTGRES).toBeUndefined();
    expect(JSON.stringify(variables.MAILROOM_MYSQL)).toMatch(/"mailroom\\.*mailroom_relay_login.*iam/);
    expect(statements(stack)).toMatch(/rds-db:connect.*\/mailroom_relay_login"/i);
    const [ingress] = Object.values(resources(Template.fromStack(stack), 'AWS::EC2::SecurityGroupIngress'));
    expect(JSON.stringify(ingress?.Properties.ToPort)).toMatch(/Endpoint\.?Port/);
  });

  test('reaches an existing database at the port of its address', () => {
    const { stack } = system((stack) => {
      const vpc = new Vpc(stack, 'Network', { natGateways: 1 });
      const [secret, access] = [new Secret(stack, 'Secret'), new SecurityGroup(stack, 'Access', { vpc })];
      const connections = { connections: new Connections({ securityGroups: [access] }) };
      const place = { vpc, access: connections, host: 'db.example.com', port: 3_307 };
      return { database: { ...place, secret, user: 'mailroom_all', databaseName: 'shop' } };
    });
    const [ingress] = Object.values(resources(Template.fromStack(stack), 'AWS::EC2::SecurityGroupIngress'));
    expect(ingress?.Properties).toMatchObject({ FromPort: 3_307, ToPort: 3_307 });
  });

  test('reads the secret of an existing database, and needs no VPC', () => {
    const { stack } = system((stack) => ({
      database: {
        secret: new Secret(stack, 'Secret'),
        user: 'mailroom_all',
        host: 'db.example.com',
        databaseName: 'shop',
      },
    }));
    const [relay] = functionsOf(stack);
    expect(relay?.Properties.VpcConfig).toBeUndefined();
    expect(JSON.stringify(relay?.Properties.Environment.Variables.MAILROOM_MYSQL)).toMatch(
      /db\.example\.com.*3306.*secretArn/,
    );
    expect(statements(stack)).not.toContain('rds-db:connect');
  });
});

describe('a service of a MySQL database', () => {
  test('writes as its own login, and consumes with its inbox there, which the directory says', () => {
    const { app, vpc, database } = system();
    const mailroom = new Mailroom(new Stack(app, 'Core'), 'Mailroom', { sources: ['orders'] });
    const stack = new Stack(app, 'Shop');
    const mysql = new MysqlMailroom(stack, 'Mysql', { database, bus: mailroom.bus });
    const entry = lambdaEntry('example/inventory/handler');
    const api = new ServiceFunction(stack, 'Api', { entry, service: 'orders', functionProps: { vpc } });
    mysql.addProducer(api, { service: 'orders', publishes: [OrderPlaced] });
    const publishes = [{ source: 'payments', type: 'Paid' }];
    mysql.grantConsumer(consumerOf(stack, mailroom, vpc).function, { service: 'payments', publishes });
    const all = functionsOf(stack).map(({ Properties }) => Properties.Environment.Variables);
    expect(all.map(({ MAILROOM_MYSQL }) => MAILROOM_MYSQL)).not.toContain(undefined);
    expect(all.find(({ MAILROOM_SOURCES }) => MAILROOM_SOURCES)?.MAILROOM_SOURCES).toBe(
      '["orders","payments"]',
    );
    expect(statements(stack)).toMatch(/rds-db:connect.*\/orders/);
    const parameters = Object.entries(resources(Template.fromStack(stack), 'AWS::SSM::Parameter'));
    expect(JSON.stringify(parameters.find(([id]) => id.includes('DirectoryEntry')))).toContain(
      '\\"inbox\\":\\"mysql\\"',
    );
  });
});

describe('refused at synth', () => {
  const on = (server: (made: ReturnType<typeof place>) => DatabaseCluster | DatabaseInstance, relay = {}) => {
    const made = place();
    const database = { server: server(made), vpc: made.vpc, databaseName: 'shop' };
    return { ...made, database, mysql: () => new MysqlMailroom(made.stack, 'Mailroom', { database, relay }) };
  };
  const postgres = auroraPostgres({ version: AuroraPostgresEngineVersion.VER_16_6 });

  test('a server of the other kind, with the construct for it', () => {
    expect(on(({ cluster }) => cluster(postgres)).mysql).toThrow(
      /Data\/Cluster, whose engine is aurora-postgresql, but a MysqlMailroom needs MySQL\. Use a PostgresMailroom/,
    );
    const { stack, database } = on(({ cluster }) => cluster(AURORA_3));
    expect(() => new PostgresMailroom(stack, 'Other', { database })).toThrow(
      /whose engine is aurora-mysql, but a PostgresMailroom needs PostgreSQL\. Use a MysqlMailroom/,
    );
    const version = SqlServerEngineVersion.VER_16;
    const other = DatabaseInstanceEngine.sqlServerEe({ version });
    expect(on(({ instance }) => instance(other)).mysql).toThrow(/Pass another server/);
  });

  const { mysql, mariaDb } = DatabaseInstanceEngine;
  test.each([
    ['Aurora MySQL 2', ({ cluster }: ReturnType<typeof place>) => cluster(AURORA_2)],
    ['MySQL 5.7', ({ instance }) => instance(mysql({ version: MysqlEngineVersion.VER_5_7_44 }))],
    ['MariaDB 10.5', ({ instance }) => instance(mariaDb({ version: MariaDbEngineVersion.VER_10_5 }))],
  ] satisfies [string, Parameters<typeof on>[0]][])(
    '%s, unless the relay claims by token',
    (_name, server) => {
      expect(on(server).mysql).toThrow(
        /no SKIP LOCKED\. Set relay\.claim to "token", or update the engine to/,
      );
      expect(on(server, { claim: 'token' }).mysql).not.toThrow();
    },
  );

  test('an order by aggregate on a server that forgets its numbers', () => {
    const relay = { claim: 'token', orderBy: 'aggregate' };
    expect(on(({ cluster }) => cluster(AURORA_2), relay).mysql).toThrow(
      /engine is aurora-mysql 5\.7\.\S+, which forgets the numbers of events when it restarts\. Remove relay\.orderBy, or update the engine to 8\.0/,
    );
    expect(on(({ cluster }) => cluster(AURORA_3), relay).mysql).not.toThrow();
    const mariaDb10_5 = mariaDb({ version: MariaDbEngineVersion.VER_10_5 });
    expect(on(({ instance }) => instance(mariaDb10_5), relay).mysql).not.toThrow();
  });

  test.each([
    [
      'MySQL 8.0',
      ({ instance }: ReturnType<typeof place>) => instance(mysql({ version: MysqlEngineVersion.VER_8_0_40 })),
    ],
    ['MariaDB 10.6', ({ instance }) => instance(mariaDb({ version: MariaDbEngineVersion.VER_10_6 }))],
    ['MariaDB 11.4', ({ instance }) => instance(mariaDb({ version: MariaDbEngineVersion.VER_11_4_4 }))],
    ['an engine without a version', ({ cluster }) => cluster(DatabaseClusterEngine.AURORA_MYSQL)],
  ] satisfies [string, Parameters<typeof on>[0]][])('not %s', (_name, server) => {
    expect(on(server).mysql).not.toThrow();
  });

  test('an inbox on a server without SKIP LOCKED', () => {
    const { app, mysql, vpc } = on(({ cluster }) => cluster(AURORA_2), { claim: 'token' });
    const mailroom = new Mailroom(new Stack(app, 'Core'), 'Mailroom', { sources: ['orders'] });
    const consumer = consumerOf(new Stack(app, 'Payments'), mailroom, vpc).function;
    expect(() => mysql().grantConsumer(consumer, { service: 'payments' })).toThrow(
      /no SKIP LOCKED\. Keep the inbox in DynamoDB, or update/,
    );
  });

  test('a claim that is neither of the two, an unknown order, a login that is too long, a bad time', () => {
    const refused = (relay: object) => () => system(() => ({ relay }));
    expect(refused({ claim: 'guess' })).toThrow(
      /relay\.claim is "guess", but must be "skip-locked" or "token"/,
    );
    expect(refused({ orderBy: 'time' })).toThrow(/relay\.orderBy is "time", but must be "aggregate"/);
    expect(refused({ user: 'x'.repeat(33) })).toThrow(/1 to 32 lower-case letters/);
    expect(refused({ poll: Duration.millis(10) })).toThrow(/relay\.poll is 10 millis/);
  });
});

describe('the resources', () => {
  const whole = () => {
    const topics = (stack: Stack) => ({ page: new Topic(stack, 'Page'), ticket: new Topic(stack, 'Ticket') });
    return system((stack) => ({
      alarms: { topics: topics(stack) },
      relay: { createEndpoints: true },
      encryptionKey: new Key(stack, 'Key'),
    }));
  };

  test('are those that were reviewed, a line each', async () => {
    const lines = `${resourceLines(Template.fromStack(whole().stack))}\n`;
    await expect(lines).toMatchFileSnapshot('__snapshots__/mysql.resources.txt');
  });

  test.each([AwsSolutionsChecks, NIST80053R5Checks])('leave nothing unexplained to %o', (Checks) => {
    const { mailroom } = whole();
    expect(new Checks(mailroom).validateScope(mailroom).violations).toEqual([]);
  });
});
