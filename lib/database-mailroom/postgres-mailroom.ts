import type { Construct } from 'constructs';
import {
  postgresProducerSettings,
  postgresRelaySettings,
} from '../../lambdas/runtime/postgres/postgres-settings.ts';
import { POSTGRES } from '../database/database-server.ts';
import type { DatabaseKind } from './database-kind.ts';
import { DatabaseMailroom, type DatabaseMailroomProps } from './database-mailroom.ts';
import type { DatabaseRelayOptions } from './database-outbox-relay.ts';

/** Properties of a {@link PostgresMailroom}. Migrate its database with `npx cdk-mailroom postgres migrate`. */
export interface PostgresMailroomProps extends DatabaseMailroomProps {
  /** @default the default of each option */
  readonly relay?: DatabaseRelayOptions;
}

const KIND: DatabaseKind = {
  ...POSTGRES,
  choices: {},
  relayProblems: () => [],
  inboxProblems: () => [],
  relayVariables: postgresRelaySettings.encode,
  producerVariables: postgresProducerSettings.encode,
};

/**
 * A Mailroom whose outbox is in PostgreSQL: the relay and the bus. Services write through {@link DatabaseMailroom.addProducer}, in
 * transactions of their own database. The relay runs from the first deployment on, and logs errors until the database is
 * migrated. The login of the relay is a member of `mailroom_relay`; those of producers and consumers have the roles `mailroom_producer` and
 * `mailroom_consumer`.
 *
 * @throws `BAD_SETTINGS` if the database accepts neither IAM authentication nor a secret, is not PostgreSQL, or a setting is invalid
 *
 * @example
 * ```ts
 * const events = new PostgresMailroom(this, 'Events', {
 *   database: { server: cluster, vpc, databaseName: 'shop' },
 *   bus: mailroom.bus,
 * });
 * events.addProducer(api, { service: 'orders', publishes: [OrderPlaced] });
 * ```
 */
export class PostgresMailroom extends DatabaseMailroom {
  constructor(scope: Construct, id: string, props: PostgresMailroomProps) {
    super(scope, id, props, KIND);
  }
}
