import type { ChangedRow } from '../../../lambdas/runtime/operations/audit/audit-changed-rows.ts';
import type { MissingEvent } from '../../../lambdas/runtime/operations/audit/audit-ledger.ts';
import type { UnsentEvent } from '../../../lambdas/runtime/operations/audit/audit-repair.ts';
import type { AuditReport } from '../../../lambdas/runtime/operations/audit/audit-report.ts';
import type { ChangedRowRepair } from '../../../lambdas/runtime/operations/audit/changed-row-repair.ts';
import type { Place } from '../../deployment/place.ts';
import { headedList } from '../../terminal/listing.ts';
import { many } from '../../terminal/output.ts';
import { prose } from '../../terminal/prose.ts';

/** A repair, planned or applied. */
export interface AuditRepair {
  readonly applied: boolean;
  readonly place: Place;
  /** The events that would be sent, or were sent, each to the one consumer that missed it. */
  readonly events: readonly MissingEvent[];
  readonly unsent: readonly Pick<UnsentEvent, 'eventId' | 'consumer' | 'why'>[];
  /** The changed rows that would be put right, or were, and those that are left. */
  readonly rows: { readonly repaired: readonly ChangedRow[]; readonly unrepaired: readonly LeftRow[] };
}

/** A row that a repair leaves. */
type LeftRow = Pick<ChangedRowRepair['unrepaired'][number], 'eventId' | 'consumer' | 'why'>;

/** The outcomes of a repaired row, planned and applied. */
const OUTCOMES = {
  event: { planned: 'make-due', applied: 'made-due' },
  message: { planned: 'list', applied: 'listed' },
} as const;

/** The member `repair` of the document of `--json`. */
export function repairJson({ applied, place, events, unsent, rows }: AuditRepair) {
  const step = applied ? 'applied' : 'planned';
  const outcome = applied ? 'sent' : 'send';
  return {
    applied,
    ...place,
    events: [
      ...events.map(({ eventId, consumer }) => ({ eventId, consumer, outcome, why: null })),
      ...unsent.map(({ eventId, consumer, why }) => ({ eventId, consumer, outcome: 'unsent', why })),
      ...rows.repaired.map(({ eventId, consumer }) => {
        const outcome = OUTCOMES[consumer === null ? 'event' : 'message'][step];
        return { eventId, consumer, outcome, why: null };
      }),
      ...rows.unrepaired.map(({ eventId, consumer, why }) => ({
        eventId,
        consumer,
        outcome: 'unrepaired',
        why,
      })),
    ],
  };
}

/**
 * A repair as text: the events that each consumer is sent, and those that it is not, with the reasons.
 *
 * @param applyCommand - the command that applies the plan
 */
export function repairText(
  { applied, events, unsent, rows }: AuditRepair,
  { inconclusive }: AuditReport,
  applyCommand: string,
): string {
  const consumers = [...new Set(events.map(({ consumer }) => consumer))].map(
    (consumer) =>
      `${many(events.filter((event) => event.consumer === consumer).length, 'event')} to ${consumer}`,
  );
  const verb = applied ? 'Sent' : 'Would send';
  return [
    prose(
      events.length > 0
        ? `${verb} ${consumers.join(', ')}.`
        : rows.repaired.length > 0
          ? ''
          : 'There is nothing to send.',
    ),
    rowsText(applied, rows.repaired),
    headedList('Not sent:', [
      ...unsent.map(({ eventId, consumer, why }) => `${eventId} to ${consumer}: ${why}`),
      ...inconclusive.map(
        ({ consumer, events }) =>
          `${many(events, 'inconclusive event')} to ${consumer}: its queue may hold them`,
      ),
    ]),
    headedList(
      'Left as they are:',
      rows.unrepaired.map(
        ({ eventId, consumer, why }) => `${eventId}${consumer === null ? '' : ` at ${consumer}`}: ${why}`,
      ),
    ),
    ...(events.length + rows.repaired.length === 0
      ? []
      : applied
        ? ['Audit again in a few minutes.']
        : [
            `Nothing was changed. To ${rows.repaired.length === 0 ? 'send them' : 'make this repair'}:\n  ${applyCommand}`,
          ]),
  ]
    .filter((part) => part !== '')
    .join('\n');
}

/** The repair of changed rows as text. */
function rowsText(applied: boolean, rows: AuditRepair['rows']['repaired']): string {
  const events = rows.filter(({ consumer }) => consumer === null).length;
  const messages = rows.length - events;
  const due = applied ? 'is due in a minute' : 'would be due in a minute';
  const listed = applied ? 'is listed' : 'would be listed';
  return prose(
    [
      ...(events === 0
        ? []
        : [`${many(events, 'event')} ${plural(due, events)}: the sweep publishes what is due.`]),
      ...(messages === 0 ? [] : [`${many(messages, 'rejected message')} ${plural(listed, messages)}.`]),
    ].join(' '),
  );
}

function plural(verb: string, count: number): string {
  return count === 1 ? verb : verb.replace(/^is /, 'are ');
}
