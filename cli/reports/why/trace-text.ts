import { atHome } from '../../../lambdas/runtime/operations/bus-consumers.ts';
import { isEventId } from '../../../lambdas/runtime/store/event-id.ts';
import { isExternalEventId } from '../../../lambdas/runtime/store/external-id.ts';
import type { InboxRow } from '../../../lambdas/runtime/store/inbox-row.ts';
import type { OutboxRow } from '../../../lambdas/runtime/store/outbox-row.ts';
import { isUnreadable, readable, type UnreadableRow } from '../../../lambdas/runtime/store/stored-rows.ts';
import { openEffects } from '../../deployment/effects.ts';
import { isClosed, refusalCode } from '../../deployment/refusal-code.ts';
import { clipped, table } from '../../terminal/output.ts';
import { paint } from '../../terminal/paint.ts';
import { prose } from '../../terminal/prose.ts';
import type { StoredEnvelope } from '../events/stored-envelope.ts';
import { isActionRequired, typeOf, type WhyVerdict } from './event-state.ts';
import type { RedriveCheck } from './redrive-check.ts';
import { placedStory, storyOf } from './story.ts';
import type { StoryLine } from './story-line.ts';
import type { Trace, TracedEvent } from './trace.ts';

/** The events of a trace as in the JSON document of docs/cli-json.md. @param payload - include their data, and the objects that hold it */
export function eventReports({ events }: Trace, payload: boolean) {
  return events.map((event) => {
    const { row, envelope, messages, atSources = [] } = event;
    return {
      eventId: event.eventId,
      type: nameOfType(event),
      source: readable(row)?.source ?? null,
      aggregateType: envelope?.aggregateType ?? null,
      aggregateId: envelope?.aggregateId ?? null,
      occurredAt: envelope?.occurredAt ?? null,
      correlationId: envelope?.correlationId ?? null,
      causationId: envelope?.causationId ?? event.resent?.causationId ?? null,
      traceId: envelope?.trace ?? null,
      status: statusOf(row),
      consumers: Object.fromEntries(
        [...messages, ...atSources].map(({ consumer, row }) => [consumer.name, statusOf(row)]),
      ),
      connectors:
        event.connectors?.map(({ readUntil = null, beatAt = null, ...connector }) => ({
          ...connector,
          readUntil,
          beatAt,
        })) ?? null,
      caused: event.caused,
      story: storyOf(event),
      ...(payload ? { data: envelope?.data ?? null, payload: envelope?.payload ?? null } : {}),
    };
  });
}

/**
 * The error of the message, or of the event, that a verdict is about, and its dead letter, as in the JSON document.
 *
 * @param redrive - the verdict of a redrive on that dead letter; `undefined` if it was not checked
 */
export function subjectReport(
  { events }: Trace,
  { eventId, consumer }: Pick<WhyVerdict, 'eventId' | 'consumer'>,
  redrive: RedriveCheck | undefined,
) {
  const event = events.find((one) => one.eventId === eventId);
  const { messages = [], atSources = [] } = event ?? {};
  const message = messages.find(({ consumer: { name } }) => name === consumer);
  const atSource = atSources.find(({ consumer: { name } }) => name === consumer);
  const row = readable(consumer === undefined ? event?.row : (message ?? atSource)?.row);
  const reason = row?.status === 'REJECTED' ? row.reason : undefined;
  const isOver = row?.status === 'PROCESSED' || row?.status === 'PUBLISHED';
  const { deadLetter } = message ?? {};
  const error = isOver ? undefined : (row?.lastError ?? deadLetter?.refusal);
  return {
    cause: [reason, error].filter((text) => text !== undefined).join(': ') || null,
    deadLetter:
      deadLetter === undefined
        ? null
        : {
            source: deadLetter.source.name,
            id: deadLetter.id,
            expiresAt: deadLetter.expiresAt,
            verdict: redrive?.id === deadLetter.id ? redrive.verdict : null,
            isRefused: isClosed(refusalCode(deadLetter.received)),
          },
  };
}

/** The effects of a trace's messages whose work is not done, as in the JSON document; `effectsInDoubt` are those that may have happened without a result. */
export function effectReports({ events }: Trace, now: number) {
  const effects = events.flatMap(({ eventId, messages }) =>
    messages.flatMap(({ consumer, row }) =>
      openEffects(eventId, atHome(consumer).name, row, now).map((effect) => ({
        eventId,
        consumer: consumer.name,
        ...effect,
      })),
    ),
  );
  return {
    effectsInDoubt: effects.filter(({ state }) => state === 'failed' || state === 'unknown'),
    openEffects: effects,
  };
}

/** The lines of a story that are red. */
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

/** The verdict as text. */
export function verdictText(verdict: WhyVerdict): string {
  const { state, text, next } = verdict;
  const colored = isActionRequired(verdict)
    ? paint.red(state)
    : state === 'processed' || state === 'cancelled'
      ? paint.green(state)
      : paint.yellow(state);
  const command = next === null ? [] : [`  ${paint.bold(next)}`];
  return [prose(`${paint.bold(colored)}  ${text}`), ...command].join('\n');
}

/** The payload of an event as text. */
interface Payload {
  readonly eventId: string;
  readonly type: string;
  /** Its JSON, line by line. JSON has already escaped its strings, so an escape is shown once. */
  readonly lines: readonly string[];
}

/** The payloads that {@link traceText} shows. */
export function payloadsOf({ events }: Trace): Payload[] {
  return events.map((event) => ({
    eventId: event.eventId,
    type: nameOfType(event) ?? '?',
    lines: payloadLines(event.envelope),
  }));
}

/** The payload of an event, or the object in S3 that holds it: the command may not read the bucket. */
function payloadLines(envelope: StoredEnvelope | undefined): string[] {
  const { data = null, payload } = envelope ?? {};
  if (payload === undefined) return JSON.stringify(data, null, 2).split('\n');
  const { bucket, key, bytes, sha256 } = payload;
  return [
    `s3://${bucket}/${key}, ${bytes} bytes, SHA-256 ${sha256}`,
    'The payload is this object in S3. Once the object is deleted or has expired, no copy is left.',
  ];
}

/** A trace as text: the tree of events and the events they caused, then a timeline. */
export function traceText(trace: Trace, payloads: readonly Payload[] = []): string {
  const { events, more } = trace;
  const known = new Map(events.map((event) => [event.eventId, event]));
  const caused = new Set(events.flatMap((event) => event.caused));
  const roots = events.filter(({ eventId }) => !caused.has(eventId));
  return [
    ...roots.flatMap((root) => tree(root, known, '')),
    ...(more ? [paint.yellow('There are more events than shown here.')] : []),
    '',
    timeline(events),
    ...(payloads.length > 0 ? ['', ...payloads.map(payloadText)] : []),
  ].join('\n');
}

function tree(event: TracedEvent, known: ReadonlyMap<string, TracedEvent>, indent: string): string[] {
  const { envelope, row } = event;
  const aggregate =
    envelope === undefined
      ? []
      : [`of ${clipped(envelope.aggregateType ?? '?')} ${clipped(envelope.aggregateId ?? '?')}`];
  const causationId = envelope?.causationId ?? event.resent?.causationId;
  const cause = indent === '' && causationId !== undefined ? [`caused by ${clipped(causationId)}`] : [];
  const traced = envelope?.trace === undefined ? [] : [`trace ${envelope.trace}`];
  const line = `${indent}${paint.bold(clipped(nameOfType(event) ?? '?'))} ${event.eventId}  ${statusOf(row) ?? originOf(event)}`;
  const below = [...aggregate, ...cause, ...traced].map((text) =>
    prose(paint.dim(`${indent}    ${text}`), indent.length + 6),
  );
  const children = event.caused.flatMap((eventId) => known.get(eventId) ?? []);
  return [line, ...below, ...children.flatMap((child) => tree(child, known, `${indent}  `))];
}

/** The origin of an event without an outbox row. */
function originOf({ eventId, resent }: TracedEvent): string {
  if (resent !== undefined) return 'resent by an operator';
  return isExternalEventId(eventId) ? 'external event' : 'no outbox row';
}

/** The timeline, to the millisecond, because the order matters. The date is in the head if there is only one. */
function timeline(events: readonly TracedEvent[]): string {
  const lines = events
    .flatMap((event) =>
      placedStory(event).map((placed) => ({ ...placed, type: clipped(nameOfType(event) ?? '?') })),
    )
    .sort((a, b) => a.order - b.order);
  const times = lines.flatMap(({ line: { at } }) => (at === null ? [] : [timeOf(at)]));
  const days = new Set(times.map((text) => text.slice(0, DATE_CHARACTERS)));
  const [day = ''] = days;
  const from = days.size === 1 ? DATE_CHARACTERS : 0;
  return table(
    [days.size === 1 ? `${day} UTC` : 'time (UTC)', 'event', 'where', 'what'],
    lines.map(({ line: { at, consumer, what, text }, type }) => [
      at === null ? '' : timeOf(at).slice(from).trimStart(),
      type,
      consumer ?? 'outbox',
      BAD.has(what) ? paint.red(text) : text,
    ]),
  );
}

/** The length of `2026-01-31`. */
const DATE_CHARACTERS = 10;

function timeOf(at: number): string {
  return new Date(at).toISOString().slice(0, 23).replace('T', ' ');
}

function payloadText({ eventId, type, lines }: Payload): string {
  return [`${paint.bold(clipped(type))} ${eventId}`, ...lines].join('\n');
}

function nameOfType(event: TracedEvent): string | null {
  const { eventId } = event;
  return typeOf(event) ?? (isEventId(eventId) || isExternalEventId(eventId) ? null : 'unreadable');
}

function statusOf(row: OutboxRow | InboxRow | UnreadableRow | undefined): string | null {
  if (row === undefined) return null;
  return isUnreadable(row) ? 'UNREADABLE' : row.status;
}
