import type {
  DatabaseProducerConfig,
  DatabaseRelayConfig,
} from '../../lambdas/runtime/relay/database-config.ts';
import type { MailroomDatabase } from '../database/database-connection.ts';
import type { DatabaseServer } from '../database/database-server.ts';

/** The choices of a relay that only one kind of database has. */
export type RelayChoices = Readonly<Record<string, string | undefined>>;

/** The parts of a Mailroom that differ from one kind of database to another. */
export interface DatabaseKind extends DatabaseServer {
  /** The options of its relay that have no equal in others, with the values of each. */
  readonly choices: Readonly<Record<string, readonly string[]>>;
  /** Validates a relay, also by its `orderBy`. */
  readonly relayProblems: (database: MailroomDatabase, chosen: RelayChoices) => string[];
  /** Validates an inbox. */
  readonly inboxProblems: (database: MailroomDatabase) => string[];
  /** The variables of the relay; those of its sources are known later. */
  readonly relayVariables: (config: DatabaseRelayConfig, chosen: RelayChoices) => Record<string, string>;
  readonly producerVariables: (config: DatabaseProducerConfig) => Record<string, string>;
}
