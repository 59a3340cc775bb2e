import { systemClock } from '../../base/clock.ts';
import type { AuditConfig } from '../../base/config.ts';
import { DELIVERY_GRACE_MS } from '../../base/patience.ts';
import { type InvocationContext, powertoolsTelemetry, type Telemetry } from '../../observe/telemetry.ts';
import { withNeighbors } from '../bus-consumers.ts';
import type { Directory } from '../directory.ts';
import { type AuditDeps, type AuditRange, createAudit } from './audit.ts';
import { type DeliveryTelemetry, sendBacklogs, sendDeliveries } from './audit-delivery-metrics.ts';
import type { AuditReport } from './audit-report.ts';

/** Dependencies of the scheduled audit. */
export interface AuditHandlerDeps extends Omit<AuditDeps, 'directory' | 'neighbors' | 'claims' | 'broken'> {
  readonly config: AuditConfig;
  /** Read on each run, so that newly deployed consumers are included. */
  readonly directory: () => Promise<Directory>;
  /** Reads the other Mailrooms on the bus, on each run. @default there are none */
  readonly bus?: ((own: Directory) => Promise<AuditBus>) | undefined;
  /** @default Powertools */
  readonly telemetry?: Telemetry | undefined;
  /** Sends a consumer's deliveries, with the start of their period as the time of the metrics. @default Powertools */
  readonly deliveryTelemetry?: DeliveryTelemetry | undefined;
}

/** The other Mailrooms on a bus, and its claims. */
type AuditBus = Pick<AuditDeps, 'neighbors' | 'claims' | 'broken'>;

/** The audit ends this long before the invocation, so that its findings are still sent, milliseconds. */
const END_MARGIN_MS = 10_000;

/** The furthest that a run looks back, whatever the queues' ages, milliseconds. */
const SINCE_MAX_MS = 86_400_000;

/** The lists of an audit's report. */
type AuditList =
  | 'missing'
  | 'inconclusive'
  | 'duplicated'
  | 'unreadableRows'
  | 'changedRows'
  | 'drift'
  | 'incomplete'
  | 'backlogs'
  | 'deliveries'
  | 'errorBudgets'
  | 'notAudited';

/** The lists that the response leaves out: metrics show backlogs and deliveries, and the rest is in the directory. */
type LeftOut = 'backlogs' | 'deliveries' | 'errorBudgets' | 'notAudited';

/** The response of an invocation: an {@link AuditReport} with counts instead of lists. The log contains the entries. */
export type AuditSummary = Omit<AuditReport, AuditList> & {
  readonly [L in Exclude<AuditList, LeftOut>]: number;
};

/** The maximum number of entries of a list in one log line. */
const LOGGED_MAX = 50;

/**
 * Creates the handler of the scheduled audit: it emits the numbers of missing events, duplicated events, and rows that cannot be read or were
 * changed by hand, including zero, and logs the ids of those that it finds. It emits backlogs and deliveries as {@link sendBacklogs} and {@link sendDeliveries} do. Events that are in a queue or lost count as neither missing nor accounted for: the
 * log has their number. It changes nothing; `mailroom audit --repair --apply` does.
 *
 * @throws (the handler) the audit's errors: an audit that does not add up, or could not read, has no result
 *
 * @example
 * ```ts
 * export const handler = createAuditHandler({ config, table, queues, rules, ages, directory });
 * ```
 */
export function createAuditHandler(
  deps: AuditHandlerDeps,
): (event: unknown, context: InvocationContext) => Promise<AuditSummary> {
  const { config, clock = systemClock } = deps;
  const common = { service: 'mailroom-audit', tableName: config.tableName };
  const telemetry = deps.telemetry ?? powertoolsTelemetry(common);
  const deliveryTelemetry: DeliveryTelemetry =
    deps.deliveryTelemetry ?? ((consumer, at) => powertoolsTelemetry({ ...common, consumer, at }));

  /**
   * A run looks back far enough that two runs cover each event. It covers two parts: the newest events, and those that have just
   * become old enough to judge although their consumer's queue is never empty. The part in between was covered before and will be
   * covered again, so it is left out: a message may be redelivered for hours before its receives are exhausted.
   */
  async function range(now: number, { consumers }: Directory): Promise<Pick<AuditRange, 'since' | 'gap'>> {
    const blind = await Promise.all(
      consumers.map(async ({ queue }) => deps.ages?.atLeastMs(queue).catch(() => 0) ?? 0),
    );
    const blindMs = Math.min(SINCE_MAX_MS - config.sinceMs, Math.max(0, ...blind.filter(Number.isFinite)));
    const since = now - blindMs - config.sinceMs;
    return blindMs > config.sinceMs
      ? { since, gap: { since: now - blindMs, until: now - config.sinceMs } }
      : { since };
  }

  return async (_event, context) => {
    telemetry.startInvocation?.(context);
    const now = clock.now();
    const endsBy = now + context.getRemainingTimeInMillis() - END_MARGIN_MS;
    const directory = await deps.directory();
    const bus = await deps.bus?.(directory);
    const audit = createAudit({ ...deps, directory, ...bus });
    const others = bus?.neighbors?.map((neighbor) => neighbor.directory) ?? [];
    const part = await range(now, withNeighbors(directory, others));
    const report = await audit.run({
      ...part,
      until: now - DELIVERY_GRACE_MS, // the next run covers newer events
      deliveriesMs: config.everyMs,
      endsBy,
    });
    const summary = tell(telemetry, report);
    sendBacklogs(deliveryTelemetry, ownOf(report, directory), now);
    sendDeliveries({ config, directory, deliveryTelemetry }, report, part);
    telemetry.flush();
    return summary;
  };
}

/** The backlogs of the Mailroom's own consumers: those of others have metrics under their own table. */
function ownOf(report: AuditReport, { consumers }: Directory): AuditReport {
  const own = new Set(consumers.map(({ name }) => name));
  return { ...report, backlogs: report.backlogs.filter(({ consumer }) => own.has(consumer)) };
}

/** Emits the findings, and logs them. */
function tell(telemetry: Telemetry, report: AuditReport): AuditSummary {
  const { missing, inconclusive, duplicated, unreadableRows, changedRows, drift, incomplete, ...others } =
    report;
  const {
    backlogs: _open,
    deliveries: _periods,
    errorBudgets: _budgets,
    notAudited: _external,
    ...counts
  } = others;
  telemetry.gauge('EventsMissing', missing.length);
  telemetry.gauge(
    'EventsDuplicated',
    duplicated.reduce((sum, { eventIds }) => sum + eventIds.length - 1, 0),
  );
  telemetry.gauge('RowsUnreadable', unreadableRows.length);
  telemetry.gauge('RowsChanged', changedRows.length);
  const summary = {
    ...counts,
    missing: missing.length,
    inconclusive: inconclusive.reduce((sum, { events }) => sum + events, 0),
    duplicated: duplicated.length,
    unreadableRows: unreadableRows.length,
    changedRows: changedRows.length,
    drift: drift.length,
    incomplete: incomplete.length,
  };
  telemetry.log.info('Audited', summary);
  warn(
    telemetry,
    'Consumers never received these events: npx cdk-mailroom audit --repair plans to send them',
    {
      missing,
    },
  );
  warn(telemetry, 'Inconclusive: these events are lost, unless the queue of their consumer holds them', {
    inconclusive,
  });
  warn(telemetry, 'These events were written more than once for one cause', { duplicated });
  warn(telemetry, 'These rows cannot be read, so the state of their events is unknown', { unreadableRows });
  warn(
    telemetry,
    'These rows were changed by hand: npx cdk-mailroom audit --repair plans to put them right',
    {
      changedRows,
    },
  );
  warn(
    telemetry,
    'The deployment differs from the declaration: deploy its stack again with npx cdk deploy --revert-drift',
    {
      drift,
    },
  );
  warn(telemetry, 'The audit is incomplete', { incomplete });
  return summary;
}

function warn(
  telemetry: Telemetry,
  message: string,
  lists: Readonly<Record<string, readonly unknown[]>>,
): void {
  for (const [name, list] of Object.entries(lists)) {
    if (list.length === 0) continue;
    telemetry.log.warn(message, { count: list.length, [name]: list.slice(0, LOGGED_MAX) });
  }
}
