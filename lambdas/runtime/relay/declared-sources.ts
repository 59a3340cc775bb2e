import type { RelayConfig } from '../config.ts';
import type { PendingRow } from '../store/pending-row.ts';
import type { Telemetry } from '../telemetry.ts';

/** The sources that this relay publishes. */
export interface DeclaredSources {
  /** Whether the source of a row is one of them. */
  has(row: PendingRow): boolean;
  /** Logs rows whose source is not, with their sources. */
  report(rows: readonly PendingRow[]): void;
}

/** How many sources and event ids a log line names. */
const NAMED_MAX = 10;

/** A forged source may be as long as a row. */
const SOURCE_CHARS_MAX = 100;

/**
 * The sources that the relay may publish, from its settings. Whoever may put on the outbox chooses the `source` of its row,
 * and the bus believes the relay: without this check, one row published by `payments` could be written by any service.
 *
 * A row with another source is neither claimed, published nor changed. It stays PENDING, and the sweep counts it.
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
      telemetry.log.error('Events with an undeclared source wait: see docs/operating.md', {
        events: rows.length,
        sources: [...new Set(rows.map(({ entry }) => entry.source.slice(0, SOURCE_CHARS_MAX)))].slice(
          0,
          NAMED_MAX,
        ),
        eventIds: rows.slice(0, NAMED_MAX).map(({ eventId }) => eventId),
      });
    },
  };
}
