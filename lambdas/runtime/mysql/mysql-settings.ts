import type { Environment } from '../base/config-codec.ts';
import {
  type DatabaseProducerConfig,
  type DatabaseRelayConfig,
  databaseProducerSettings,
  databaseRelaySettings,
} from '../relay/database-config.ts';

const REMEDY = 'set the variable (docs/mysql.md).';

/**
 * Reads the settings of a producer from its environment.
 *
 * @throws `BAD_CONFIG`, naming the variable, if one is missing or out of range
 */
export function readMysqlProducerConfig(env: Environment): DatabaseProducerConfig {
  return databaseProducerSettings(REMEDY).read(env);
}

/**
 * Reads the settings of a relay from its environment.
 *
 * @throws `BAD_CONFIG`, naming the variable, if one is missing or out of range
 */
export function readMysqlRelayConfig(env: Environment): DatabaseRelayConfig {
  return databaseRelaySettings(REMEDY).read(env);
}
