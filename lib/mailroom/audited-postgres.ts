import { Annotations } from 'aws-cdk-lib';
import type { SubnetSelection } from 'aws-cdk-lib/aws-ec2';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { ISecret } from 'aws-cdk-lib/aws-secretsmanager';
import type { Construct } from 'constructs';
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
import { POSTGRES } from '../database/database-server.ts';
import type { MailroomFunctionProps } from '../functions/function-props.ts';

/** A PostgreSQL database that a scheduled audit reads, beside the table. */
export interface AuditedPostgres {
  /** The database of the `PostgresMailroom` on the bus. Its stack must not depend on that of the audit. */
  readonly database: MailroomDatabase;
  /** The login of the audit, a member of `mailroom_auditor`. @default mailroom_audit_login, or `user` of an existing database */
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

function loginOf({ database, user, secret }: AuditedPostgres) {
  return { user: user ?? ('server' in database ? 'mailroom_audit_login' : database.user), secret };
}

function subnetsOf({ database: { vpc }, vpcSubnets }: AuditedPostgres): SubnetSelection | undefined {
  return vpc && (vpcSubnets ?? databaseSubnets(vpc));
}

/** Validates the database of an audit. */
export function auditedPostgresProblems(audited: AuditedPostgres): string[] {
  const { database } = audited;
  const subnets = subnetsOf(audited);
  return [
    ...databaseProblems(POSTGRES, database),
    ...loginProblems(POSTGRES, 'postgres.user', loginOf(audited).user),
    ...(database.vpc && subnets ? subnetProblems('postgres.vpcSubnets', database.vpc, subnets) : []),
    ...unless(
      !('server' in database) || audited.secret === undefined,
      'postgres.secret is given, but functions log in to database.server with IAM. Omit it.',
    ),
  ];
}

/** The place of the audit's function: the VPC of the database. */
export function besideDatabase(
  scope: Construct,
  audited: AuditedPostgres,
  functionProps: MailroomFunctionProps = {},
): MailroomFunctionProps {
  const { vpc } = audited.database;
  const vpcSubnets = subnetsOf(audited);
  if (vpc === undefined || vpcSubnets === undefined) return functionProps;
  const { allowAllOutbound: _all, allowAllIpv6Outbound: _ipv6, ...others } = functionProps;
  const securityGroups = [databaseClients(scope, vpc, 'The Mailroom audit of a PostgreSQL database')];
  return { ...others, vpc, vpcSubnets, securityGroups };
}

/** Lets the audit's function log in to the database. */
export function letRead(scope: Construct, audit: LambdaFunction, audited: AuditedPostgres): void {
  const { vpc } = audited.database;
  const vpcSubnets = subnetsOf(audited);
  connect(scope, audit, POSTGRES, audited.database, loginOf(audited));
  if (vpc && vpcSubnets && areIsolated(vpc, vpcSubnets))
    Annotations.of(scope).addWarningV2(
      'cdk-mailroom:auditWithoutRoute',
      `The audit ${scope.node.path} runs in isolated subnets, and reaches AWS only by endpoints of the VPC: a gateway endpoint for DynamoDB, and interface ` +
        `endpoints for events, monitoring, sqs and ssm${'server' in audited.database ? '' : ', and secretsmanager'}. Without them, no run completes, and the alarm AuditSilent fires. ` +
        'Create them, or acknowledge this if the VPC has them.',
    );
}
