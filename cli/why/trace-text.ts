import { isEventId } from '../../lambdas/runtime/store/event-id.ts';
import type { InboxRow, OutboxRow } from '../../lambdas/runtime/store/rows.ts';
import { isUnreadable, readable, type UnreadableRow } from '../../lambdas/runtime/store/stored-rows.ts';
import { clipped, table } from '../frame/output.ts';
import { paint } from '../frame/paint.ts';
import { placedStory, type StoryLine, storyOf } from './story.ts';
import type { Trace, TracedEvent } from './trace-reader.ts';
import { isActionRequired, typeOf, type WhyVerdict } from './verdict.ts';

/** The events of a trace as `--json` prints them: docs/cli.md describes each member. @param payload - with their data */
export function eventReports({ events }: Trace, payload: boolean) {
  return events.map((event) => {
    const { row, envelope, messages } = event;
    return {
      eventId: event.eventId,
      type: nameOfType(event),
      source: readable(row)?.source ?? null,
      aggregateType: envelope?.aggregateType ?? null,
      aggregateId: envelope?.aggregateId ?? null,
      occurredAt: envelope?.occurredAt ?? null,
      correlationId: envelope?.correlationId ?? null,
      causationId: envelope?.causationId ?? null,
      status: statusOf(row),
      consumers: Object.fromEntries(
        messages.map((message) => [message.consumer.name, statusOf(message.row)]),
      ),
      caused: event.caused,
      story: storyOf(event),
      ...(payload ? { data: envelope?.data ?? null } : {}),
    };
  });
}

/** What is shown in red. */
const BAD: ReadonlySet<StoryLine['what']> = new Set([
  'publish-failed',
  'dead',
  'failed',
  'rejected',
  'dead-letter',
  'effect-released',
  'not-arrived',
  'unreadable',
]);

/** The verdict for people. */
export function verdictText(verdict: WhyVerdict): string {
  const { state, text, next } = verdict;
  const coloured = isActionRequired(verdict)
    ? paint.red(state)
    : state === 'processed'
      ? paint.green(state)
      : paint.yellow(state);
  const command = next === null ? [] : [`  ${paint.bold(next)}`];
  return [`${paint.bold(coloured)}  ${text}`, ...command].join('\n');
}

/** The payload of an event for people. */
interface Payload {
  readonly eventId: string;
  readonly type: string;
  /** Its JSON, line by line: JSON has escaped what is in its texts, so that an escape is shown once. */
  readonly lines: readonly string[];
}

/** The payloads of a trace, to be shown with {@link traceText}. */
export function payloadsOf({ events }: Trace): Payload[] {
  return events.map((event) => ({
    eventId: event.eventId,
    type: nameOfType(event) ?? '?',
    lines: JSON.stringify(event.envelope?.data ?? null, null, 2).split('\n'),
  }));
}

/** A trace for people: the events as a tree of who caused whom, then everything that happened to them, in order of time. */
export function traceText(trace: Trace, payloads: readonly Payload[] = []): string {
  const { events, more } = trace;
  const known = new Map(events.map((event) => [event.eventId, event]));
  const caused = new Set(events.flatMap((event) => event.caused));
  const roots = events.filter(({ eventId }) => !caused.has(eventId));
  return [
    ...roots.flatMap((root) => tree(root, known, '')),
    ...(more ? [paint.yellow('There are more events than are shown here.')] : []),
    '',
    timeline(events),
    ...(payloads.length > 0 ? ['', ...payloads.map(payloadText)] : []),
  ].join('\n');
}

function tree(event: TracedEvent, known: ReadonlyMap<string, TracedEvent>, indent: string): string[] {
  const { envelope, row } = event;
  const what =
    envelope === undefined
      ? ''
      : `  ${clipped(envelope.aggregateType ?? '?')} ${clipped(envelope.aggregateId ?? '?')}`;
  const cause =
    indent === '' && envelope?.causationId !== undefined
      ? paint.dim(`  caused by ${clipped(envelope.causationId)}`)
      : '';
  const line = `${indent}${paint.bold(clipped(nameOfType(event) ?? '?'))} ${event.eventId}${what}  ${statusOf(row) ?? 'no outbox row'}${cause}`;
  const children = event.caused.flatMap((eventId) => known.get(eventId) ?? []);
  return [line, ...children.flatMap((child) => tree(child, known, `${indent}  `))];
}

/** What happened, to the millisecond: the order is the point. */
function timeline(events: readonly TracedEvent[]): string {
  const lines = events
    .flatMap((event) =>
      placedStory(event).map((placed) => ({ ...placed, type: clipped(nameOfType(event) ?? '?') })),
    )
    .sort((a, b) => a.order - b.order);
  return table(
    ['time (UTC)', 'event', 'where', 'what'],
    lines.map(({ line: { at, consumer, what, text }, type }) => [
      at === null ? '' : clockTime(at),
      type,
      consumer ?? 'outbox',
      BAD.has(what) ? paint.red(text) : text,
    ]),
  );
}

function clockTime(at: number): string {
  return new Date(at).toISOString().slice(0, 23).replace('T', ' ');
}

function payloadText({ eventId, type, lines }: Payload): string {
  return [`${paint.bold(clipped(type))} ${eventId}`, ...lines].join('\n');
}

function nameOfType(event: TracedEvent): string | null {
  return typeOf(event) ?? (isEventId(event.eventId) ? null : 'unreadable');
}

function statusOf(row: OutboxRow | InboxRow | UnreadableRow | undefined): string | null {
  if (row === undefined) return null;
  return isUnreadable(row) ? 'UNREADABLE' : row.status;
}
