import type { RelayConfig } from '../base/config.ts';
import type { Telemetry } from '../observe/telemetry.ts';
import type { EventRow } from './publish-events.ts';

/** The sources that this relay publishes. */
export interface DeclaredSources {
  /** Returns true if the row's source is declared. */
  has(row: EventRow): boolean;
  /** Logs rows with undeclared sources, and the sources. */
  report(rows: readonly EventRow[]): void;
}

/** The maximum number of sources and event ids in a log line. */
const NAMED_MAX = 10;

/** A forged source may be as long as a row. */
const SOURCE_CHARS_MAX = 100;

/**
 * Makes the set of sources that the relay may publish, from its settings. Any writer of the outbox chooses the `source` of its
 * row, and the bus trusts the relay: without this check, any service could write a row that is published as `payments`.
 *
 * A row with another source is not claimed, published or changed. It stays PENDING, and the sweep counts it.
 */
export function declaredSources(
  { sources }: Pick<RelayConfig, 'sources'>,
  telemetry: Telemetry,
): DeclaredSources {
  const declared = sources === undefined ? undefined : new Set(sources);
  return {
    has: ({ entry }) => declared?.has(entry.source) ?? true,
    report: (rows) => {
      if (rows.length === 0) return;
      const sources = new Set(rows.map(({ entry }) => entry.source.slice(0, SOURCE_CHARS_MAX)));
      telemetry.log.error(
        'Events from an undeclared source are waiting: npx cdk-mailroom why <eventId> --payload shows one and what to do',
        {
          events: rows.length,
          sources: [...sources].slice(0, NAMED_MAX),
          eventIds: rows.slice(0, NAMED_MAX).map(({ eventId }) => eventId),
        },
      );
    },
  };
}
