import { Annotations } from 'aws-cdk-lib';
import type { SubnetSelection } from 'aws-cdk-lib/aws-ec2';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { ISecret } from 'aws-cdk-lib/aws-secretsmanager';
import type { Construct } from 'constructs';
import { DATABASE_NAMES, type DatabaseEngine } from '../../lambdas/runtime/base/database-engine.ts';
import { unless } from '../checks/refusal.ts';
import {
  connect,
  databaseProblems,
  loginProblems,
  type MailroomDatabase,
} from '../database/database-connection.ts';
import {
  areIsolated,
  databaseClients,
  databaseSubnets,
  subnetProblems,
} from '../database/database-network.ts';
import { type DatabaseServer, MYSQL, POSTGRES } from '../database/database-server.ts';
import type { MailroomFunctionProps } from '../functions/function-props.ts';

/** A database that a scheduled audit reads, beside the table. */
export interface AuditedDatabase {
  /** The database of the `PostgresMailroom` or the `MysqlMailroom` on the bus. Its stack must not depend on that of the audit. */
  readonly database: MailroomDatabase;
  /**
   * The login of the audit: in PostgreSQL a member of `mailroom_auditor`, in MySQL with `SELECT` on `mailroom.*`.
   *
   * @default mailroom_audit_login, or `user` of an existing database
   */
  readonly user?: string;
  /** The secret of its login, for an existing database. @default the secret of the database */
  readonly secret?: ISecret;
  /**
   * The subnets of the function, with a route to the services that an audit calls. They and the VPC of the database replace those of
   * `functionProps`.
   *
   * @default the private subnets of the VPC, or the isolated ones
   */
  readonly vpcSubnets?: SubnetSelection;
}

/** The databases of an audit, by their kinds. */
type AuditedDatabases = Readonly<Partial<Record<DatabaseEngine, AuditedDatabase | undefined>>>;

/** The database that an audit reads, with its kind. */
export interface Audited extends AuditedDatabase {
  readonly kind: DatabaseServer;
}

/** The database of an audit; `undefined` if it reads the table alone. */
export function auditedOf({ postgres, mysql }: AuditedDatabases): Audited | undefined {
  if (postgres) return { ...postgres, kind: POSTGRES };
  return mysql && { ...mysql, kind: MYSQL };
}

function loginOf({ database, user, secret }: AuditedDatabase) {
  return { user: user ?? ('server' in database ? 'mailroom_audit_login' : database.user), secret };
}

function subnetsOf({ database: { vpc }, vpcSubnets }: AuditedDatabase): SubnetSelection | undefined {
  return vpc && (vpcSubnets ?? databaseSubnets(vpc));
}

/** Validates the database of an audit. */
export function auditedProblems(audits: AuditedDatabases): string[] {
  const audited = auditedOf(audits);
  if (audited === undefined) return [];
  const { database, kind } = audited;
  const subnets = subnetsOf(audited);
  return [
    ...unless(
      audits.postgres === undefined || audits.mysql === undefined,
      'postgres and mysql are given, but an audit reads one database. Omit one, and run `npx cdk-mailroom audit --database` for it.',
    ),
    ...databaseProblems(kind, database, ({ engine }) => `audit.${engine}`),
    ...loginProblems(kind, `${kind.engine}.user`, loginOf(audited).user),
    ...(database.vpc && subnets ? subnetProblems(`${kind.engine}.vpcSubnets`, database.vpc, subnets) : []),
    ...unless(
      !('server' in database) || audited.secret === undefined,
      `${kind.engine}.secret is given, but functions log in to database.server with IAM. Omit it.`,
    ),
  ];
}

/** The place of the audit's function: the VPC of the database. */
export function besideDatabase(
  scope: Construct,
  audited: Audited,
  functionProps: MailroomFunctionProps = {},
): MailroomFunctionProps {
  const { vpc } = audited.database;
  const vpcSubnets = subnetsOf(audited);
  if (vpc === undefined || vpcSubnets === undefined) return functionProps;
  const { allowAllOutbound: _all, allowAllIpv6Outbound: _ipv6, ...others } = functionProps;
  const description = `The Mailroom audit of a ${DATABASE_NAMES[audited.kind.engine]} database`;
  return { ...others, vpc, vpcSubnets, securityGroups: [databaseClients(scope, vpc, description)] };
}

/** Lets the audit's function log in to the database. */
export function letRead(scope: Construct, audit: LambdaFunction, audited: Audited): void {
  const { vpc } = audited.database;
  const vpcSubnets = subnetsOf(audited);
  connect(scope, audit, audited.kind, audited.database, { ...loginOf(audited), isOwn: true });
  if (vpc && vpcSubnets && areIsolated(vpc, vpcSubnets))
    Annotations.of(scope).addWarningV2(
      'cdk-mailroom:auditWithoutRoute',
      `The audit ${scope.node.path} runs in isolated subnets, and reaches AWS only by endpoints of the VPC: a gateway endpoint for DynamoDB, and interface ` +
        `endpoints for events, monitoring, sqs and ssm${'server' in audited.database ? '' : ', and secretsmanager'}. Without them, no run completes, and the alarm AuditSilent fires. ` +
        'Create them, or acknowledge this if the VPC has them.',
    );
}
