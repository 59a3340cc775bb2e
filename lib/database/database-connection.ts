import { Stack, Token } from 'aws-cdk-lib';
import { type IConnectable, type IVpc, Port } from 'aws-cdk-lib/aws-ec2';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { IDatabaseCluster, IDatabaseInstance, IDatabaseProxy } from 'aws-cdk-lib/aws-rds';
import type { ISecret } from 'aws-cdk-lib/aws-secretsmanager';
import type { IConstruct } from 'constructs';
import { checkGrant } from '../checks/granted.ts';
import { unless } from '../checks/refusal.ts';
import { type DatabaseServer, engineProblems } from './database-server.ts';

/** A database of Aurora or RDS. Functions log in with tokens of IAM, so it needs `iamAuthentication: true`. */
export interface RdsDatabase {
  /** The cluster, e.g. of Aurora Serverless v2, or the instance. */
  readonly server: IDatabaseCluster | IDatabaseInstance;
  /**
   * A proxy through which every function connects, with `iamAuth: true`. It needs a secret for each login, and costs from 22 USD a
   * month (RDS Proxy pricing, us-east-1).
   *
   * @default functions connect to the server
   */
  readonly proxy?: IDatabaseProxy & IConnectable;
  /** The VPC of the server, in which the relay and the audit run. */
  readonly vpc: IVpc;
  /** The name of the database. */
  readonly databaseName: string;
}

/** An existing database, whose login is in Secrets Manager. Every function logs in with the same secret, unless it gets its own. */
export interface ExistingDatabase {
  /** The secret, with `username` and `password`, and `host` unless you give it. */
  readonly secret: ISecret;
  /** The login that the secret is for, the same as its `username`. */
  readonly user: string;
  /** The name of the host. @default `host` of the secret, which CloudFormation reads at deployment */
  readonly host?: string;
  /** @default 5432 for PostgreSQL, 3306 for MySQL */
  readonly port?: number;
  /** The VPC in which the relay and the audit run. @default no VPC: the database is reached over the internet */
  readonly vpc?: IVpc;
  /** The database itself, or anything with its security groups, which admit the functions. @default you open its port to them yourself */
  readonly access?: IConnectable;
  /** The name of the database. */
  readonly databaseName: string;
}

/** A database in which a Mailroom keeps its outbox. */
export type MailroomDatabase = RdsDatabase | ExistingDatabase;

/** An unquoted name of a login, as IAM and every database take it. */
const LOGIN = /^[a-z_][a-z0-9_]*$/;

/** Validates the name of a login, which a role's policy and `GRANT` both contain. */
export function loginProblems({ loginMax }: DatabaseServer, property: string, login: string): string[] {
  const found = Token.isUnresolved(login) ? 'a value that is known at deployment only' : `"${login}"`;
  return unless(
    LOGIN.test(login) && login.length <= loginMax,
    `${property} is ${found}, but must be the name of a login of the database: 1 to ${loginMax} lower-case letters, digits and "_", not beginning ` +
      'with a digit. The policy of the function names it. Set it, e.g. to "orders".',
  );
}

/** Validates a database. @param placeOf - what the database of a kind is passed to @default the construct of its Mailroom */
export function databaseProblems(
  kind: DatabaseServer,
  database: MailroomDatabase,
  placeOf: (kind: DatabaseServer) => string = ({ construct }) => `a ${construct}`,
): string[] {
  const name = database.databaseName;
  return [
    ...unless(
      !Token.isUnresolved(name) && name !== '',
      `database.databaseName is ${name === '' ? 'empty' : 'known at deployment only'}. Set it to the name itself, e.g. "shop".`,
    ),
    ...('server' in database
      ? [...engineProblems(database.server, kind, placeOf), ...authenticationProblems(database)]
      : loginProblems(kind, 'database.user', database.user)),
  ];
}

/** A proxy authenticates its own clients, and reads secrets for the server. An imported resource cannot be checked. */
function authenticationProblems({ server, proxy }: RdsDatabase): string[] {
  const { path } = (proxy ?? server).node;
  if (proxy) {
    const auth = propertyOf<readonly { readonly iamAuth?: string }[]>(proxy, 'auth');
    return unless(
      auth === 'unknown' || auth?.some(({ iamAuth }) => iamAuth === 'REQUIRED') === true,
      `database.proxy is ${path}, which does not accept IAM authentication. Set iamAuth: true on it.`,
    );
  }
  const enabled = propertyOf<boolean>(server, 'enableIamDatabaseAuthentication');
  return unless(
    enabled === 'unknown' || enabled === true,
    `database.server is ${path}, which does not accept IAM authentication, and no secret is given. Set iamAuthentication: true on it, or ` +
      'pass { secret, user, … } as database.',
  );
}

function propertyOf<T>(construct: IConstruct, name: string): T | undefined | 'unknown' {
  const resource = construct.node.defaultChild;
  if (!resource) return 'unknown';
  return Stack.of(construct).resolve((resource as unknown as Record<string, unknown>)[name]) as T | undefined;
}

/**
 * The certificates of RDS, which Node.js does not trust by default (Lambda developer guide, "Building Lambda functions with
 * Node.js", CA certificate loading).
 * RDS Proxy has a certificate that it does trust.
 */
const CERTIFICATES = { NODE_EXTRA_CA_CERTS: '/var/runtime/ca-cert.pem' };

/** A login, and the secret with its password for a database without IAM authentication. */
export interface DatabaseLogin {
  readonly user: string;
  /** @default the secret of the database */
  readonly secret?: ISecret | undefined;
  /** True for the relay and the audit, which need only the tables of Mailroom. @default false */
  readonly isOwn?: boolean | undefined;
}

/** Lets a function log in as one login of the database: its environment variable, its grant and its way through the network. */
export function connect(
  scope: IConstruct,
  client: LambdaFunction,
  kind: DatabaseServer,
  database: MailroomDatabase,
  login: DatabaseLogin,
): void {
  const { user, isOwn = false } = login;
  const isRds = 'server' in database;
  const secret = isRds ? undefined : (login.secret ?? database.secret);
  const address = isRds ? addressOf(kind, database) : hostOf(kind, database);
  const settings = {
    ...address,
    database: (isOwn ? kind.ownDatabase : undefined) ?? database.databaseName,
    user,
    ...(secret ? { secretArn: secret.secretArn } : { iam: true }),
  };
  const environment = { ...CERTIFICATES, [kind.variable]: Stack.of(scope).toJsonString(settings) };
  for (const [key, value] of Object.entries(environment)) client.addEnvironment(key, value);
  if (isRds) grantLogin(database, client, user);
  else if (secret !== undefined) checkGrant(client, secret.grantRead(client), secret);
  const peer = isRds ? (database.proxy ?? database.server) : database.access;
  // Rules in the stack of the client: the stack of the database must not depend on it.
  const port = peer?.connections.defaultPort ?? Port.tcp(address.port); // a proxy has no default port
  if (peer && client.isBoundToVpc) client.connections.allowTo(peer, port, `Mailroom: ${user}`);
}

/** The place of a server. */
interface Address {
  readonly host: string;
  readonly port: number;
}

function addressOf({ port: usual }: DatabaseServer, { server, proxy }: RdsDatabase): Address {
  if (proxy) return { host: proxy.endpoint, port: usual };
  const { hostname: host, port } =
    'clusterEndpoint' in server ? server.clusterEndpoint : server.instanceEndpoint;
  return { host, port };
}

function hostOf(kind: DatabaseServer, { secret, host, port = kind.port }: ExistingDatabase): Address {
  return { host: host ?? secret.secretValueFromJson('host').unsafeUnwrap(), port };
}

/** `rds-db:connect` as exactly this login. */
function grantLogin({ server, proxy }: RdsDatabase, client: LambdaFunction, user: string): void {
  const endpoint = proxy ?? server;
  checkGrant(client, endpoint.grantConnect(client, user), endpoint);
}
