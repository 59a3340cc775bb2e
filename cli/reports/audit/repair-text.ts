import type { MissingEvent } from '../../../lambdas/runtime/operations/audit/audit-ledger.ts';
import type { UnsentEvent } from '../../../lambdas/runtime/operations/audit/audit-repair.ts';
import type { AuditReport } from '../../../lambdas/runtime/operations/audit/audit-report.ts';
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
}

/** The member `repair` of the document of `--json`. */
export function repairJson({ applied, place, events, unsent }: AuditRepair) {
  const outcome = applied ? 'sent' : 'send';
  return {
    applied,
    ...place,
    events: [
      ...events.map(({ eventId, consumer }) => ({ eventId, consumer, outcome, why: null })),
      ...unsent.map(({ eventId, consumer, why }) => ({ eventId, consumer, outcome: 'unsent', why })),
    ],
  };
}

/**
 * A repair as text: the events that each consumer is sent, and those that it is not, with the reasons.
 *
 * @param applyCommand - the command that applies the plan
 */
export function repairText(
  { applied, events, unsent }: AuditRepair,
  { inconclusive }: AuditReport,
  applyCommand: string,
): string {
  const consumers = [...new Set(events.map(({ consumer }) => consumer))].map(
    (consumer) =>
      `${many(events.filter((event) => event.consumer === consumer).length, 'event')} to ${consumer}`,
  );
  const verb = applied ? 'Sent' : 'Would send';
  return [
    prose(events.length === 0 ? 'There is nothing to send.' : `${verb} ${consumers.join(', ')}.`),
    headedList('Not sent:', [
      ...unsent.map(({ eventId, consumer, why }) => `${eventId} to ${consumer}: ${why}`),
      ...inconclusive.map(
        ({ consumer, events }) =>
          `${many(events, 'inconclusive event')} to ${consumer}: its queue may hold them`,
      ),
    ]),
    ...(events.length === 0
      ? []
      : applied
        ? ['Audit again in a few minutes.']
        : [`Nothing was changed. To send them:\n  ${applyCommand}`]),
  ]
    .filter((part) => part !== '')
    .join('\n');
}
