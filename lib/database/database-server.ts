import type { IDatabaseCluster, IDatabaseInstance } from 'aws-cdk-lib/aws-rds';
import { DATABASE_NAMES, type DatabaseEngine } from '../../lambdas/runtime/base/database-engine.ts';
import { unless } from '../checks/refusal.ts';

/** The properties of a kind of server that its clients depend on. */
export interface DatabaseServer {
  readonly engine: DatabaseEngine;
  /** The construct of its Mailroom. */
  readonly construct: string;
  /** The variable with its address, in every function that connects. */
  readonly variable: string;
  readonly port: number;
  /** The database to which Mailroom's own functions connect: their logins need no right on that of the services. @default the database of the services */
  readonly ownDatabase?: string;
  /** The longest name of a login. */
  readonly loginMax: number;
  /** The engines of RDS that are of this kind. */
  readonly engineTypes: RegExp;
}

/** PostgreSQL. */
export const POSTGRES: DatabaseServer = {
  engine: 'postgres',
  construct: 'PostgresMailroom',
  variable: 'MAILROOM_POSTGRES',
  port: 5_432,
  loginMax: 63, // NAMEDATALEN - 1
  engineTypes: /^(aurora-postgresql|postgres)$/,
};

/** MySQL and MariaDB. */
export const MYSQL: DatabaseServer = {
  engine: 'mysql',
  construct: 'MysqlMailroom',
  variable: 'MAILROOM_MYSQL',
  port: 3_306,
  ownDatabase: 'mailroom',
  loginMax: 32, // MySQL reference manual, "Account User Names and Passwords"
  engineTypes: /^(aurora-mysql|mysql|mariadb)$/,
};

/** A cluster or an instance of RDS. An imported one need not name its engine. */
type RdsServer = IDatabaseCluster | IDatabaseInstance;

/** Validates that a server of RDS is of a kind. */
export function engineProblems(
  server: RdsServer,
  { engine, engineTypes, construct }: DatabaseServer,
): string[] {
  const found = server.engine?.engineType;
  if (found === undefined || engineTypes.test(found)) return [];
  const other = [POSTGRES, MYSQL].find((kind) => kind.engineTypes.test(found));
  return [
    `database.server is ${server.node.path}, whose engine is ${found}, but a ${construct} needs ${DATABASE_NAMES[engine]}. ` +
      (other ? `Use a ${other.construct} for it.` : 'Pass another server.'),
  ];
}

/** The first versions with SKIP LOCKED, by the engine of RDS. Versions of Aurora begin with that of MySQL. */
const SKIP_LOCKED_SINCE: Readonly<Record<string, readonly [major: number, minor: number]>> = {
  'aurora-mysql': [8, 0],
  mysql: [8, 0],
  mariadb: [10, 6],
};

/** Validates that a server of MySQL has SKIP LOCKED. A version that is not named cannot be checked. @param remedy - besides an update */
export function skipLockedProblems(server: RdsServer, remedy: string): string[] {
  const { engineType = '', engineVersion } = server.engine ?? {};
  const [since, version] = [SKIP_LOCKED_SINCE[engineType], engineVersion?.fullVersion];
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(version ?? '')?.map(Number) ?? [];
  if (since === undefined || major === undefined || minor === undefined) return [];
  return unless(
    major > since[0] || (major === since[0] && minor >= since[1]),
    `database.server is ${server.node.path}, whose engine is ${engineType} ${version}, which has no SKIP LOCKED. ${remedy}update the engine to ${since.join('.')} or later.`,
  );
}
