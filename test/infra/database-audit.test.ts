import { Stack } from 'aws-cdk-lib';
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions';
import { SubnetType, Vpc } from 'aws-cdk-lib/aws-ec2';
import { Key } from 'aws-cdk-lib/aws-kms';
import { Tracing } from 'aws-cdk-lib/aws-lambda';
import {
  AuroraMysqlEngineVersion,
  AuroraPostgresEngineVersion,
  ClusterInstance,
  DatabaseCluster,
  DatabaseClusterEngine,
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
import { auditSettings } from '../../lambdas/runtime/base/config.ts';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import {
  type AuditedDatabase,
  DeliveryAlarms,
  InboxConsumer,
  Mailroom,
  type MailroomFunctionProps,
  MysqlMailroom,
  type OutboxAuditOptions,
  PostgresMailroom,
} from '../../lib/index.ts';
import { resourceLines } from './resource-lines.ts';
import { resources, testApp } from './synth.ts';

const OrderPlaced = { source: 'orders', type: 'OrderPlaced' };

type Engine = 'postgres' | 'mysql';

const KINDS = {
  postgres: {
    engine: DatabaseClusterEngine.auroraPostgres({ version: AuroraPostgresEngineVersion.VER_16_6 }),
    construct: PostgresMailroom,
    variable: 'MAILROOM_POSTGRES',
  },
  mysql: {
    engine: DatabaseClusterEngine.auroraMysql({ version: AuroraMysqlEngineVersion.VER_3_08_0 }),
    construct: MysqlMailroom,
    variable: 'MAILROOM_MYSQL',
  },
} as const;

interface Settings {
  readonly audited?: (data: Stack) => Partial<AuditedDatabase>;
  readonly functionProps?: (vpc: Vpc) => MailroomFunctionProps;
  readonly iamAuthentication?: boolean;
  readonly subnets?: SubnetType;
}

/** The database in its own stack, and a Mailroom whose audit reads it. */
function systemOf(
  engine: Engine,
  { audited, functionProps, iamAuthentication = true, subnets }: Settings = {},
) {
  const app = testApp();
  const data = new Stack(app, 'Data');
  const subnetType = subnets ?? SubnetType.PRIVATE_WITH_EGRESS;
  const vpc = new Vpc(data, 'Vpc', {
    natGateways: subnetType === SubnetType.PRIVATE_WITH_EGRESS ? 1 : 0,
    subnetConfiguration: [
      { name: 'public', subnetType: SubnetType.PUBLIC },
      { name: 'data', subnetType },
    ],
  });
  const server = new DatabaseCluster(data, 'Cluster', {
    engine: KINDS[engine].engine,
    vpc,
    vpcSubnets: { subnetType },
    writer: ClusterInstance.serverlessV2('Writer'),
    iamAuthentication,
  });
  const database = { server, vpc, databaseName: 'shop' };
  const core = new Stack(app, 'Core');
  const mailroom = new Mailroom(core, 'Mailroom', {
    sources: ['orders'],
    encryptionKey: new Key(core, 'Key'),
    tracing: Tracing.ACTIVE,
    audit: { [engine]: { database, ...audited?.(data) } },
    ...(functionProps && { functionProps: functionProps(vpc) }),
  });
  return { app, data, vpc, database, core, mailroom };
}

/** The audit's function in the template of a stack. */
function auditOf(stack: Stack) {
  const all = Object.values(resources(Template.fromStack(stack), 'AWS::Lambda::Function'));
  const found = all.find(({ Properties }) => Properties.Environment.Variables.MAILROOM_AUDIT_SINCE_MS);
  if (found === undefined) throw new Error('The template has no audit function');
  return found.Properties;
}

/** The actions and resources of the audit's role. */
const statements = (stack: Stack): string =>
  JSON.stringify(
    Object.entries(resources(Template.fromStack(stack), 'AWS::IAM::ManagedPolicy')).filter(([id]) =>
      id.includes('Audit'),
    ),
  );

const refused = (synth: () => unknown): string => {
  try {
    synth();
  } catch (error) {
    return String(error);
  }
  return 'nothing';
};

describe.each(['postgres', 'mysql'] as const)('the audit of a database of %s', (engine) => {
  const system = (settings?: Settings) => systemOf(engine, settings);
  const { variable, construct: DatabaseMailroom } = KINDS[engine];

  test('is a function of its own code in the VPC of the database, with the settings and the schedule of the audit', () => {
    const { core, mailroom } = system();
    const { VpcConfig, Environment, Timeout } = auditOf(core);
    expect(VpcConfig.SubnetIds).toHaveLength(2);
    expect(VpcConfig.SecurityGroupIds).toHaveLength(1);
    expect(Timeout).toBe(840);
    const { Variables } = Environment;
    expect(auditSettings.read({ ...Variables, MAILROOM_TABLE: 'table' })).toEqual({
      tableName: 'table',
      sinceMs: 3_600_000,
      everyMs: 900_000,
    });
    expect(JSON.stringify(Variables[variable])).toMatch(/mailroom_audit_login.*iam/);
    expect(mailroom.audit?.readsDatabase).toBe(engine);
    Template.fromStack(core).hasResourceProperties('AWS::Events::Rule', {
      ScheduleExpression: 'rate(15 minutes)',
    });
  });

  test('logs in as one user, besides the rights of every audit', () => {
    const { core } = system();
    expect(statements(core)).toMatch(/rds-db:connect.*\/mailroom_audit_login"/i);
    expect(statements(core)).toContain('dynamodb:Query');
    expect(statements(core)).not.toMatch(/events:PutEvents|dynamodb:(Put|Update|Delete)Item/);
  });

  test('is let into the database by one rule, and out by HTTPS; the stack of the database depends on nothing', () => {
    const { core, data } = system();
    const template = Template.fromStack(core);
    template.resourceCountIs('AWS::EC2::SecurityGroupIngress', 1);
    template.resourceCountIs('AWS::EC2::SecurityGroupEgress', 1);
    const [group] = Object.values(resources(template, 'AWS::EC2::SecurityGroup'));
    const ports = group?.Properties.SecurityGroupEgress.map(({ ToPort }: { ToPort: number }) => ToPort);
    expect(ports).toEqual([443]);
    expect(data.dependencies).toEqual([]);
  });

  test('reads the secret of its own login, and needs no VPC, for an existing database', () => {
    const { core } = system({
      audited: (data) => ({
        database: {
          secret: new Secret(data, 'All'),
          user: 'all',
          host: 'db.example.com',
          databaseName: 'shop',
        },
        user: 'auditor',
        secret: new Secret(data, 'Auditor'),
      }),
    });
    const { VpcConfig, Environment } = auditOf(core);
    expect(VpcConfig).toBeUndefined();
    expect(JSON.stringify(Environment.Variables[variable])).toMatch(
      /db\.example\.com.*auditor.*secretArn.*Auditor/,
    );
    expect(statements(core)).toMatch(/secretsmanager:GetSecretValue.*Auditor/);
    expect(statements(core)).not.toContain('rds-db:connect');
  });

  test('leaves the VPC of the other functions of the Mailroom for that of the database', () => {
    const { core } = system({ functionProps: (vpc) => ({ vpc, allowAllOutbound: true }) });
    expect(auditOf(core).VpcConfig.SecurityGroupIds).toHaveLength(1);
    expect(JSON.stringify(auditOf(core).VpcConfig)).toContain('AuditNetwork');
  });

  test('looks at the queues of consumers, with an inbox in either store, as every audit does', () => {
    const { app, core, mailroom, vpc, database } = system();
    const stack = new Stack(app, 'Payments');
    const events = new DatabaseMailroom(stack, 'Events', { database, bus: mailroom.bus });
    const { function: payments } = new InboxConsumer(stack, 'Payments', {
      mailroom,
      name: 'payments',
      service: 'payments',
      events: [OrderPlaced],
      entry: lambdaEntry('example/inventory/handler'),
      function: { vpc },
    });
    events.grantConsumer(payments, { service: 'payments' });
    const policies = JSON.stringify(resources(Template.fromStack(stack), 'AWS::SQS::QueuePolicy'));
    expect(policies).toContain('TheAuditLooks');
    expect(core.dependencies.map(({ stackName }) => stackName)).toEqual(['Data']);
  });

  test('warns in isolated subnets, from which only endpoints lead to AWS', () => {
    const warnings = (stack: Stack) =>
      Annotations.fromStack(stack).findWarning('*', Match.stringLikeRegexp('auditWithoutRoute'));
    expect(warnings(system({ subnets: SubnetType.PRIVATE_ISOLATED }).core)).toHaveLength(1);
    expect(warnings(system().core)).toEqual([]);
  });

  test('has the alarms of every audit, whose commands read the database', () => {
    const { core, mailroom } = system();
    const alarms = { page: new Topic(core, 'Page'), ticket: new Topic(core, 'Ticket') };
    new DeliveryAlarms(core, 'Alarms', { mailroom, alarms });
    const all = Object.values(resources(Template.fromStack(core), 'AWS::CloudWatch::Alarm'));
    const found = all.filter(({ Properties }) =>
      ['EventsMissing', 'EventsDuplicated', 'RowsUnreadable'].includes(Properties.MetricName),
    );
    expect(found).toHaveLength(4);
    for (const { Properties } of found)
      expect(JSON.stringify(Properties.AlarmDescription)).toMatch(/audit --since \d+h --database/);
    const silent = found.find(({ Properties }) => Properties.Statistic === 'SampleCount');
    expect(silent?.Properties).toMatchObject({ TreatMissingData: 'breaching', EvaluationPeriods: 3 });
  });

  test.each([AwsSolutionsChecks, NIST80053R5Checks, PCIDSS321Checks, HIPAASecurityChecks, ServerlessChecks])(
    'leaves nothing unexplained to %o',
    (Checks) => {
      const { audit } = system().mailroom;
      if (audit === undefined) throw new Error('The Mailroom has no audit');
      const { violations } = new Checks(audit).validateScope(audit);
      expect(violations).toEqual([]);
    },
  );

  test('is refused for a cluster without IAM authentication, a public subnet, a bad login, or a secret beside IAM', () => {
    const message = (settings: Settings) => refused(() => system(settings));
    expect(message({ iamAuthentication: false })).toMatch(/Core\/Mailroom\/Audit.*iamAuthentication: true/s);
    expect(message({ audited: () => ({ vpcSubnets: { subnetType: SubnetType.PUBLIC } }) })).toContain(
      `${engine}.vpcSubnets contains a public subnet`,
    );
    expect(message({ audited: () => ({ user: 'Audit-1' }) })).toContain(`${engine}.user is "Audit-1"`);
    expect(message({ audited: (data) => ({ secret: new Secret(data, 'Secret') }) })).toContain(
      `${engine}.secret is given`,
    );
  });

  test('creates these resources', async () => {
    const { core } = system();
    const lines = resourceLines(Template.fromStack(core))
      .split('\n')
      .filter((line) => line.includes('MailroomAudit'));
    await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot(`__snapshots__/${engine}-audit.resources.txt`);
  });
});

test('an audit of a database of another kind, or of two databases, is refused', () => {
  const { core, database } = systemOf('mysql');
  const make = (id: string, audit: OutboxAuditOptions) => refused(() => new Mailroom(core, id, { audit }));
  expect(make('Other', { postgres: { database } })).toMatch(
    /engine is aurora-mysql, but audit\.postgres needs PostgreSQL\. Use audit\.mysql for it\./,
  );
  expect(make('Two', { postgres: { database }, mysql: { database } })).toContain(
    'an audit reads one database',
  );
});
