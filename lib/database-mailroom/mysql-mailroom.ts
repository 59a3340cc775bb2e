import type { Construct } from 'constructs';
import { mysqlProducerSettings, mysqlRelaySettings } from '../../lambdas/runtime/mysql/mysql-settings.ts';
import type { MailroomDatabase } from '../database/database-connection.ts';
import { abilityProblems, KEEPS_NUMBERS, MYSQL, SKIP_LOCKED } from '../database/database-server.ts';
import type { DatabaseKind } from './database-kind.ts';
import { DatabaseMailroom, type DatabaseMailroomProps } from './database-mailroom.ts';
import type { DatabaseRelayOptions } from './database-outbox-relay.ts';

/** Options of the relay of a {@link MysqlMailroom}. */
export interface MysqlRelayOptions extends DatabaseRelayOptions {
  /**
   * The way to claim events: `token` for a server without SKIP LOCKED, that is before MySQL 8.0.1 and MariaDB 10.6, such as Aurora MySQL 2. It cannot
   * have inboxes.
   *
   * @default 'skip-locked'
   */
  readonly claim?: 'skip-locked' | 'token';
}

/** Properties of a {@link MysqlMailroom}. Migrate its database with `migrateMysql`. */
export interface MysqlMailroomProps extends DatabaseMailroomProps {
  /** @default the default of each option */
  readonly relay?: MysqlRelayOptions;
}

/** A server that is not of RDS cannot be checked. */
const serverProblems = (database: MailroomDatabase, ability: typeof SKIP_LOCKED, remedy: string) =>
  'server' in database ? abilityProblems(database.server, ability, remedy) : [];

const KIND: DatabaseKind = {
  ...MYSQL,
  choices: { claim: ['skip-locked', 'token'] },
  relayProblems: (database, { claim, orderBy }) => [
    ...(claim === 'token' ? [] : serverProblems(database, SKIP_LOCKED, 'Set relay.claim to "token", or ')),
    ...(orderBy === undefined ? [] : serverProblems(database, KEEPS_NUMBERS, 'Remove relay.orderBy, or ')),
  ],
  inboxProblems: (database) => serverProblems(database, SKIP_LOCKED, 'Keep the inbox in DynamoDB, or '),
  relayVariables: (config, { claim }) =>
    mysqlRelaySettings.encode({ ...config, ...(claim === 'token' && { claim }) }),
  producerVariables: mysqlProducerSettings.encode,
};

/**
 * A Mailroom whose outbox is in MySQL or MariaDB, on RDS, Aurora or elsewhere: the relay and the bus. Services write through
 * {@link DatabaseMailroom.addProducer}, in transactions of their own database. The relay runs from the first deployment on, and logs errors
 * until the database is migrated.
 *
 * @throws `BAD_SETTINGS` if the database accepts neither IAM authentication nor a secret, is not MySQL or MariaDB, is of a
 * version that the relay cannot claim in or, with `orderBy`, keep an order in, or a setting is invalid
 *
 * @example
 * ```ts
 * const events = new MysqlMailroom(this, 'Events', {
 *   database: { server: cluster, vpc, databaseName: 'shop' },
 *   bus: mailroom.bus,
 * });
 * events.addProducer(api, { service: 'orders', publishes: [OrderPlaced] });
 * ```
 */
export class MysqlMailroom extends DatabaseMailroom {
  constructor(scope: Construct, id: string, props: MysqlMailroomProps) {
    super(scope, id, props, KIND);
  }
}
