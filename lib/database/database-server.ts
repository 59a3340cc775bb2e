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

/** Validates that a server of RDS is of a kind. @param placeOf - what the server of a kind is passed to */
export function engineProblems(
  server: RdsServer,
  kind: DatabaseServer,
  placeOf: (kind: DatabaseServer) => string,
): string[] {
  const found = server.engine?.engineType;
  if (found === undefined || kind.engineTypes.test(found)) return [];
  const other = [POSTGRES, MYSQL].find(({ engineTypes }) => engineTypes.test(found));
  return [
    `database.server is ${server.node.path}, whose engine is ${found}, but ${placeOf(kind)} needs ${DATABASE_NAMES[kind.engine]}. ` +
      (other ? `Use ${placeOf(other)} for it.` : 'Pass another server.'),
  ];
}

/** An ability that servers of MySQL have from a version on. */
interface Ability {
  /** The consequence, in earlier versions. */
  readonly lack: string;
  /** By the engine of RDS. Versions of Aurora begin with that of MySQL. */
  readonly since: Readonly<Record<string, readonly [major: number, minor: number]>>;
}

/** Claims that pass over the rows of others. */
export const SKIP_LOCKED: Ability = {
  lack: 'has no SKIP LOCKED',
  since: { 'aurora-mysql': [8, 0], mysql: [8, 0], mariadb: [10, 6] },
};

/** A number that was assigned is not assigned again, also after a restart. RDS has never had MariaDB 10.2 before 10.2.4. */
export const KEEPS_NUMBERS: Ability = {
  lack: 'forgets the numbers of events when it restarts',
  since: { 'aurora-mysql': [8, 0], mysql: [8, 0], mariadb: [10, 2] },
};

/** Validates that a server has an ability. A version that is not named cannot be checked. @param remedy - besides an update */
export function abilityProblems(server: RdsServer, { lack, since }: Ability, remedy: string): string[] {
  const { engineType = '', engineVersion } = server.engine ?? {};
  const [first, version] = [since[engineType], engineVersion?.fullVersion];
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(version ?? '')?.map(Number) ?? [];
  if (first === undefined || major === undefined || minor === undefined) return [];
  return unless(
    major > first[0] || (major === first[0] && minor >= first[1]),
    `database.server is ${server.node.path}, whose engine is ${engineType} ${version}, which ${lack}. ${remedy}update the engine to ${first.join('.')} or later.`,
  );
}
