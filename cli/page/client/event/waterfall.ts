import type { ReadingDocuments } from '../../server/readings.ts';

/** The document of `why`. */
export type WhyDocument = ReadingDocuments['why'];

/** An event of a {@link WhyDocument}. */
export type EventReport = WhyDocument['events'][number];

/** A line of an event's story, as `why` tells it. */
export type ReportLine = EventReport['story'][number];

/** A stretch of time in a lane. */
export interface Bar {
  /**
   * `waiting`: not claimed or not published. `ended`: up to the failure of an attempt. `working`: the last attempt. `effect`: an effect
   * that is being run.
   */
  readonly kind: 'waiting' | 'ended' | 'working' | 'effect';
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

/** A moment in a lane. */
interface Mark {
  readonly kind: 'ok' | 'bad' | 'plain' | 'next';
  readonly at: number;
  readonly text: string;
}

/** The part of an event's story that is about its outbox row, or about one consumer. */
export interface Lane {
  /** `null` for the outbox. */
  readonly consumer: string | null;
  readonly bars: readonly Bar[];
  readonly marks: readonly Mark[];
}

const GOOD: ReadonlySet<ReportLine['what']> = new Set([
  'published',
  'processed',
  'resolved',
  'effect-completed',
]);

const BAD: ReadonlySet<ReportLine['what']> = new Set([
  'publish-failed',
  'dead',
  'failed',
  'attempt-ended',
  'rejected',
  'effect-released',
  'unreadable',
]);

/** The lines that end an attempt. */
const ENDS: ReadonlySet<ReportLine['what']> = new Set(['processed', 'failed', 'rejected']);

/** True for a line that tells of trouble. */
export function isBad({ what }: Pick<ReportLine, 'what'>): boolean {
  return BAD.has(what) || what === 'dead-letter' || what === 'not-arrived';
}

/** The lanes of an event: the outbox, then each consumer. @param now - the end of what is still under way */
export function lanesOf({ story, consumers }: Pick<EventReport, 'story' | 'consumers'>, now: number): Lane[] {
  const published = story.find(({ what }) => what === 'published')?.at ?? null;
  return [null, ...Object.keys(consumers)].map((consumer) => {
    const lines = story.filter((line) => line.consumer === consumer);
    const bars = consumer === null ? outboxBars(lines, now) : messageBars(lines, published, now);
    // Hours before everything else, it would squeeze the picture.
    const drawn = lines.filter(({ what }) => what !== 'scheduled' || published === null);
    return { consumer, bars, marks: drawn.flatMap((line) => markOf(line, now)) };
  });
}

/** The state of a lane in a word: without a row, where the event is. @param status - of its row; `null` without one */
export function laneWord(
  { status: outbox, story }: Pick<EventReport, 'status' | 'story'>,
  consumer: string | null,
  status: string | null | undefined,
): string {
  if (typeof status === 'string') return status.toLowerCase();
  if (consumer === null) return 'no outbox row';
  if (story.some((line) => line.consumer === consumer && line.what === 'dead-letter')) return 'dead letter';
  return outbox === 'PENDING' ? 'not published' : 'not claimed';
}

/** The first and the last moment of some lanes, epoch milliseconds; at least a millisecond apart. */
export function spanOf(lanes: readonly Lane[]): { readonly from: number; readonly to: number } {
  const times = lanes.flatMap(({ bars, marks }) => [
    ...bars.flatMap(({ from, to }) => [from, to]),
    ...marks.filter(({ kind }) => kind !== 'next').map(({ at }) => at),
  ]);
  const from = times.length === 0 ? 0 : Math.min(...times);
  return { from, to: Math.max(from + 1, ...times) };
}

function markOf({ what, at, text }: ReportLine, now: number): Mark[] {
  if (at === null) return [];
  const kind = GOOD.has(what) ? 'ok' : BAD.has(what) ? 'bad' : at > now ? 'next' : 'plain';
  return [{ kind, at, text }];
}

function outboxBars(lines: readonly ReportLine[], now: number): Bar[] {
  const at = (...words: readonly ReportLine['what'][]) =>
    lines.find(({ what }) => words.includes(what))?.at ?? undefined;
  const from = at('committed', 'due');
  if (from === undefined || from > now) return [];
  const to = at('published', 'discarded') ?? now;
  return [{ kind: 'waiting', from, to, text: 'in the outbox' }];
}

/**
 * A bar for each attempt. A row stores when its last attempt began and when each ended, so an earlier one has its wait in its bar.
 * Before a redrive it was rejected for an unknown part of that time, so nothing is shown.
 */
function messageBars(lines: readonly ReportLine[], published: number | null, now: number): Bar[] {
  const claimed = lines.find(({ what }) => what === 'claimed')?.at ?? null;
  const end = lines.find(({ what, at }) => ENDS.has(what) && at !== null)?.at ?? null;
  const waitsTo = claimed ?? end ?? now;
  const isRedriven = lines.some(({ what }) => what === 'redriven');
  const isLeft = lines.some(({ what }) => what === 'unfinished');
  const ended = lines.flatMap(({ what, at, text }) =>
    what === 'attempt-ended' && at !== null ? [{ at, text }] : [],
  );
  const waitsFrom = ended.at(-1)?.at ?? published;
  return [
    ...(published === null || isRedriven || waitsFrom === null
      ? []
      : [
          ...ended.map(({ at, text }, index) => bar('ended', ended[index - 1]?.at ?? published, at, text)),
          bar('waiting', waitsFrom, waitsTo, claimed === null ? 'not claimed' : 'before its last attempt'),
        ]),
    ...(claimed === null || isLeft ? [] : [bar('working', claimed, end ?? now, 'last attempt')]),
    ...effectBars(lines, claimed, end),
  ];
}

/** An effect without a result has no bar if an earlier attempt started it: the end of that attempt is unknown. */
function effectBars(lines: readonly ReportLine[], claimed: number | null, end: number | null): Bar[] {
  return lines.flatMap((line, index) => {
    if (line.what !== 'effect-started' || line.at === null) return [];
    const next = lines[index + 1];
    const lastEnd = line.at < (claimed ?? line.at) ? null : end;
    const hasEnded = next?.what === 'effect-completed' || next?.what === 'effect-released';
    const to = (hasEnded ? next.at : null) ?? lastEnd;
    return to === null || to === undefined ? [] : [bar('effect', line.at, to, line.text)];
  });
}

function bar(kind: Bar['kind'], from: number, to: number, text: string): Bar {
  return { kind, from, to: Math.max(from, to), text };
}

/** An event in the chain of causes, with its depth below the first. */
export interface ChainLink<Event> {
  readonly event: Event;
  readonly depth: number;
}

/** The chain in reading order: each event, followed by the events that it caused. */
export function chainOf<Event extends { readonly eventId: string; readonly caused: readonly string[] }>(
  events: readonly Event[],
): ChainLink<Event>[] {
  const known = new Map(events.map((event) => [event.eventId, event]));
  const caused = new Set(events.flatMap((event) => event.caused));
  const links = new Map<string, ChainLink<Event>>();
  const add = (event: Event, depth: number): void => {
    if (links.has(event.eventId)) return; // a row changed by hand may make a circle
    links.set(event.eventId, { event, depth });
    for (const id of event.caused) {
      const child = known.get(id);
      if (child !== undefined) add(child, depth + 1);
    }
  };
  for (const event of events) if (!caused.has(event.eventId)) add(event, 0);
  for (const event of events) add(event, 0);
  return [...links.values()];
}

const OPTIONS = /(?: --(?:stage|stack|profile|region|endpoint) \S+)+$/;

/**
 * Another command of `mailroom` with the options of a reading's command that select the Mailroom.
 *
 * @example
 * ```ts
 * commandLike('npx cdk-mailroom why 42 --stage dev', 'logs 01a1fe32-7358'); // 'npx cdk-mailroom logs 01a1fe32-7358 --stage dev'
 * ```
 */
export function commandLike(command: string, words: string): string {
  return `npx cdk-mailroom ${words}${OPTIONS.exec(command)?.[0] ?? ''}`;
}
