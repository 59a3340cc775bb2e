import type { ProducerConfig, RelayConfig } from '../base/config.ts';
import { busName, choice, integer, names, settings, text } from '../base/config-codec.ts';

/** Settings of a service that writes events to its own database. */
export type DatabaseProducerConfig = Pick<ProducerConfig, 'service' | 'publishes' | 'tableName'>;

/** Settings of a relay of a database. */
export interface DatabaseRelayConfig
  extends Pick<
    RelayConfig,
    | 'tableName'
    | 'busName'
    | 'claimLeaseMs'
    | 'publishTimeoutMs'
    | 'maxAttempts'
    | 'publishedRetentionDays'
    | 'sources'
  > {
  /** The pause after a pass that found no event, milliseconds. */
  readonly pollMs: number;
  /**
   * `aggregate` publishes the events of an aggregate one after another, in the order of writing: lock the aggregate before you write. All relays of the
   * database need it. @default in any order
   */
  readonly orderBy?: 'aggregate' | undefined;
}

/** Settings of such a service. `MAILROOM_TABLE` is the dimension `table` of its metrics. @param remedy - ends the error of a variable */
export const databaseProducerSettings = (remedy: string) =>
  settings<DatabaseProducerConfig>(
    {
      service: text('MAILROOM_SERVICE'),
      tableName: text('MAILROOM_TABLE'),
      publishes: names('MAILROOM_PUBLISHES'),
    },
    remedy,
  );

/** The settings of such a relay, by their variables. */
export const databaseRelayFields = {
  tableName: text('MAILROOM_TABLE'),
  busName: busName('MAILROOM_BUS'),
  claimLeaseMs: integer('MAILROOM_CLAIM_LEASE_MS', 1_000, 900_000),
  publishTimeoutMs: integer('MAILROOM_PUBLISH_TIMEOUT_MS', 100, 60_000),
  maxAttempts: integer('MAILROOM_MAX_ATTEMPTS', 1, 1_000),
  publishedRetentionDays: integer('MAILROOM_PUBLISHED_RETENTION_DAYS', 1, 3_650),
  sources: names('MAILROOM_SOURCES'),
  pollMs: integer('MAILROOM_POLL_MS', 50, 60_000),
  orderBy: choice('MAILROOM_ORDER_BY', ['aggregate']),
};
