import { orderText } from '../base/order.ts';
import { DAY_MS, HOUR_MS } from '../base/units.ts';
import type { DynamoContext } from '../consume/consumer-context.ts';
import type { Handler } from '../consume/handler.ts';
import { isExternal } from '../events/external-event.ts';
import { sourceConsumerKey } from '../store/keys.ts';
import { inboxExpiresAt } from '../store/row-expiry.ts';
import { SCHEMA } from '../store/row-schema.ts';
import type { SourceConsumerRow } from '../store/source-consumer-row.ts';

/** The source of a consumer's messages if no loop has named it. */
const UNNAMED = 'another source';

/** Keeps the entry of a consumer of another source, by which `mailroom` and the audit know it. */
export interface SourceEntry {
  /** Names the source, and writes the entry meanwhile. */
  begin(from: string, definitions: readonly Handler['definition'][]): void;
  /**
   * Writes the entry at the first call, and a day after the last write, or an hour after one that failed; otherwise it does nothing. It never throws: the entry is for
   * operators, and a message does not depend on it.
   */
  renew(definitions: readonly Handler['definition'][]): Promise<void> | undefined;
}

/** Creates the entry of one process. */
export function createSourceEntry({ config, clock, table, telemetry }: DynamoContext): SourceEntry {
  let from = UNNAMED;
  let seenAt = Number.NEGATIVE_INFINITY;

  const write = async (definitions: readonly Handler['definition'][]): Promise<void> => {
    const { consumer, service, order, maxAttempts, inboxRetentionDays } = config;
    const row: SourceConsumerRow = {
      ...sourceConsumerKey(consumer),
      schema: SCHEMA,
      service,
      from,
      events: definitions.map((one) => ({
        source: one.source,
        type: one.type,
        ...(isExternal(one)
          ? { external: { id: one.external.id ?? [] } }
          : one.sequence && { sequence: true }),
      })),
      ...(order !== undefined && { order: orderText(order) }),
      maxAttempts,
      inboxRetentionDays,
      seenAt,
      expiresAt: inboxExpiresAt(seenAt, inboxRetentionDays),
    };
    try {
      await table.write({ Put: { Item: { ...row } } });
    } catch (error) {
      seenAt += HOUR_MS - DAY_MS;
      telemetry.log.warn(
        'The entry of this consumer could not be written, so `mailroom` does not list it: allow PutItem on MAILROOM#SOURCES. It is tried again in an hour',
        { error: error as Error },
      );
    }
  };

  const renew: SourceEntry['renew'] = (definitions) => {
    const now = clock.now();
    if (now - seenAt < DAY_MS) return undefined;
    seenAt = now;
    return write(definitions);
  };

  return {
    renew,
    begin: (source, definitions) => {
      from = source;
      void renew(definitions);
    },
  };
}
