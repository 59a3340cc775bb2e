import { receiptText } from '../../../lambdas/runtime/base/bridge-receipt.ts';
import { isExternalEventId } from '../../../lambdas/runtime/store/external-id.ts';
import { readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import { clipped, many } from '../../terminal/output.ts';
import { duration } from '../../terminal/times.ts';
import type { PassedOver } from '../order/passed-over.ts';
import { capturedText, isCaptured } from './captured-words.ts';
import { nameOf, typeOf } from './event-state.ts';
import { supersededText } from './order-verdict.ts';
import { bornAt, type TracedEvent } from './trace.ts';

/** The most events of a chain, after the first, whose consumers are named. */
const NAMED_MAX = 4;

/**
 * The sentences on a chain of which everything is processed: by which consumers, and when.
 *
 * @param events - without those that were cancelled
 * @param isWhole - every consumer was read
 */
export function processedText(
  [first, ...caused]: readonly TracedEvent[],
  {
    cancelled,
    isWhole,
    passedOver,
  }: { readonly cancelled: number; readonly isWhole: boolean; readonly passedOver?: PassedOver | undefined },
): string {
  if (first === undefined) return '';
  const events = [first, ...caused];
  const chain =
    caused.length === 0
      ? nameOf(first)
      : `${nameOf(first)} and the ${many(caused.length, 'event')} that it caused`;
  if (isExternalEventId(first.eventId)) {
    const by = consumersOf(first);
    return `${chain}: processed by ${by}. Mailroom does not know which consumers an external event should reach.`;
  }
  if (first.resent !== undefined) {
    return `${chain}: processed by ${consumersOf(first)}, to which an operator sent it in place of ${first.resent.causationId}.`;
  }
  return (
    `${chain}: ${isCaptured(first) ? `left to change data capture (${capturedText(first)})` : 'published'}${byText(events, isWhole)}.` +
    forwardedText(first) +
    supersededText(events, passedOver) +
    (cancelled === 0
      ? ''
      : ` ${many(cancelled, 'scheduled event')} of the chain ${cancelled === 1 ? 'was' : 'were'} cancelled.`)
  );
}

/** The consumers of each event of a chain, after the word "published". */
function byText(events: readonly TracedEvent[], isWhole: boolean): string {
  if (events.every((event) => consumersOf(event) === '')) {
    return isWhole
      ? `. No consumer subscribes to ${events.length === 1 ? 'it' : 'them'}, or only with a filter that does not match`
      : ', and processed by no consumer that was read';
  }
  const named = events
    .slice(0, NAMED_MAX + 1)
    .map(
      (event, index) =>
        `${index === 0 ? '' : `${clipped(typeOf(event) ?? 'Event')} `}by ${consumersOf(event) || 'no consumer'}`,
    );
  const more = events.length - named.length;
  return `, and processed ${named.join('; ')}${more > 0 ? `; ${many(more, 'more event')} by their consumers` : ''}`;
}

/** The consumers that have processed an event, each with its time: `payments (412 ms after its commit), inventory (1 s)`. */
function consumersOf(event: TracedEvent): string {
  const [begins, since] = beginOf(event);
  let isFirst = true;
  const texts = [...event.messages, ...(event.atSources ?? [])].flatMap(({ consumer: { name }, row }) => {
    const known = readable(row);
    if (known?.status !== 'PROCESSED') return [];
    const { processedAt, resolvedBy, supersededBy } = known;
    if (resolvedBy !== undefined) return [`${name} (resolved by ${clipped(resolvedBy)})`];
    if (supersededBy !== undefined) return [`${name} (superseded)`];
    if (processedAt === undefined || begins === undefined) return [name];
    const after = isFirst ? ` after ${since}` : '';
    isFirst = false;
    return [`${name} (${duration(processedAt - begins)}${after})`];
  });
  return texts.join(', ');
}

/** When an event's way to its consumers began, epoch milliseconds, and what that was; `undefined` for an external event. */
function beginOf(event: TracedEvent): readonly [number | undefined, string] {
  if (isExternalEventId(event.eventId)) return [undefined, ''];
  if (event.resent !== undefined) return [event.resent.at, 'it was sent'];
  return [bornAt(event), readable(event.row)?.dueAt === undefined ? 'its commit' : 'it was due'];
}

/** The place of an event at each target to which a bridge forwarded it. */
function forwardedText(event: TracedEvent): string {
  const texts = event.messages.flatMap(({ consumer, row }) => {
    const { result } = { result: undefined, ...readable(row) };
    const text = receiptText(result);
    return text === undefined ? [] : [` ${consumer.name}: ${clipped(text)}.`];
  });
  return texts.join('');
}
