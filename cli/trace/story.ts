import { effectNameOf } from '../../lambdas/runtime/store/keys.ts';
import type { EffectRow, InboxRow, OutboxRow } from '../../lambdas/runtime/store/rows.ts';
import { isUnreadable, readable, type UnreadableRow } from '../../lambdas/runtime/store/stored-rows.ts';
import { clipped, duration, time } from '../frame/output.ts';
import { unfinishedText, unreadableText } from '../reading/row-text.ts';
import { bornAt, type TracedEvent, type TracedMessage } from './trace-reader.ts';

/** One thing that happened to an event, or that is to come. */
export interface StoryLine {
  /** Epoch milliseconds; `null` when the rows do not say when. It then stands where it belongs. */
  readonly at: number | null;
  /** A stable word, see docs/cli.md. */
  readonly what: StoryWord;
  /** Who did it; `null` for the outbox and the relay. */
  readonly consumer: string | null;
  readonly text: string;
}

/** What can happen. */
type StoryWord =
  | 'committed'
  | 'expired'
  | 'publish-failed'
  | 'dead'
  | 'requeued'
  | 'published'
  | 'discarded'
  | 'claimed'
  | 'effect-started'
  | 'effect-completed'
  | 'effect-released'
  | 'failed'
  | 'unfinished'
  | 'next-attempt'
  | 'processed'
  | 'resolved'
  | 'rejected'
  | 'letter'
  | 'not-arrived'
  | 'unreadable';

/** Everything that is known to have happened to an event, in order of time. */
export function storyOf(event: TracedEvent): StoryLine[] {
  return placedStory(event)
    .sort((a, b) => a.order - b.order)
    .map(({ line }) => line);
}

/** The lines of an event's story, each with the time at which it stands: one without a time of its own stands behind what it followed. */
export function placedStory(event: TracedEvent): { readonly line: StoryLine; readonly order: number }[] {
  const begins = bornAt(event);
  const arrives = readable(event.row)?.publishedAt ?? begins;
  const stories = [
    { from: begins, lines: outboxStory(event) },
    ...event.messages.map((message) => ({ from: arrives, lines: messageStory(message) })),
  ];
  return stories.flatMap(({ from, lines }) => {
    let order = from;
    return lines.map((line) => {
      order = line.at ?? order;
      return { line, order };
    });
  });
}

function outboxStory(event: TracedEvent): StoryLine[] {
  const { row } = event;
  const say = (what: StoryWord, at: number | null, text: string): StoryLine => ({
    at,
    what,
    consumer: null,
    text,
  });
  if (row === undefined) {
    return [say('expired', null, 'there is no outbox row: published and expired, or never committed here')];
  }
  if (isUnreadable(row)) return [say('unreadable', null, `the outbox row ${unreadableText(row.unreadable)}`)];
  const committedAt = bornAt(event);
  const tried = attemptText(row.attempts);
  const error = row.lastError === undefined ? '' : `: ${clipped(row.lastError)}`;
  const requeued = say(
    'requeued',
    row.requeuedAt ?? null,
    `requeued ${who(row.requeuedBy, row.requeuedReason)}`,
  );
  return [
    say('committed', committedAt, `committed by ${clipped(row.source)}`),
    ...(row.lastError !== undefined && row.deadAt === undefined
      ? [say('publish-failed', null, `could not be published${tried}${error}`)]
      : []),
    ...(row.deadAt === undefined ? [] : [say('dead', row.deadAt, `DEAD${tried}${error}`)]),
    ...(row.requeuedAt === undefined ? [] : [requeued]),
    ...(row.status === 'PENDING' ? [pendingLine(row)] : []),
    ...(row.publishedAt === undefined
      ? []
      : [
          say(
            'published',
            row.publishedAt,
            `published by the ${clipped(row.publishedBy ?? 'relay')}, ${duration(row.publishedAt - committedAt)} after its commit`,
          ),
        ]),
    ...(row.discardedAt === undefined
      ? []
      : [say('discarded', row.discardedAt, `discarded ${who(row.discardedBy, row.discardedReason)}`)]),
  ];
}

function pendingLine(row: OutboxRow): StoryLine {
  const text =
    row.lastError === undefined ? 'not published yet; the sweep may take it from here on' : 'tried again';
  return { at: row.leaseUntil, what: 'next-attempt', consumer: null, text };
}

function messageStory(message: TracedMessage): StoryLine[] {
  const { consumer, row, effects, letter, queue } = message;
  const say = (what: StoryWord, at: number | null, text: string): StoryLine => ({
    at,
    what,
    consumer: consumer.name,
    text,
  });
  const letterLines =
    letter === undefined
      ? []
      : [
          say(
            'letter',
            null,
            `its letter is in ${letter.place.place}: sent ${time(letter.letter.sentAt)}, deleted for ever ${time(letter.expiresAt)}`,
          ),
        ];
  if (row === undefined) {
    if (letter !== undefined || queue === undefined) return letterLines;
    const held = `${queue.waiting} waiting and ${queue.inFlight} in flight`;
    return [say('not-arrived', null, `has not claimed it; its queue has ${held}`)];
  }
  if (isUnreadable(row)) return [say('unreadable', null, `its row ${unreadableText(row.unreadable)}`)];
  return [
    ...(row.claimedAt === undefined
      ? []
      : [say('claimed', row.claimedAt, `attempt ${row.attempts} of ${consumer.maxAttempts} began`)]),
    ...effects.flatMap((effect) => effectStory(effect, consumer.name)),
    ...outcomeStory(message, row, say),
    ...letterLines,
  ];
}

function outcomeStory(
  { consumer, failedAt }: TracedMessage,
  row: InboxRow,
  say: (what: StoryWord, at: number | null, text: string) => StoryLine,
): StoryLine[] {
  const attempt = `attempt ${row.attempts} of ${consumer.maxAttempts}`;
  const error = row.lastError === undefined ? '' : `: ${clipped(row.lastError)}`;
  if (row.status === 'FAILED') {
    const next = row.attempts + 1;
    const text =
      next > consumer.maxAttempts
        ? 'rejected when it comes again'
        : `attempt ${next} of ${consumer.maxAttempts}`;
    return [
      say('failed', failedAt ?? null, `${attempt} failed${error}`),
      ...(row.retryAt === undefined ? [] : [say('next-attempt', row.retryAt, text)]),
    ];
  }
  if (row.status === 'REJECTED') {
    return [
      say(
        'rejected',
        row.rejectedAt ?? null,
        `rejected, ${clipped(row.reason ?? 'for no known reason')}${error}`,
      ),
    ];
  }
  if (row.status === 'DISCARDED') {
    const text = `discarded ${who(row.discardedBy, row.discardedReason)}`;
    return [say('discarded', row.discardedAt ?? null, text)];
  }
  if (row.status === 'PROCESSING') {
    const begun = row.outOfTime === true || row.unfinished !== undefined;
    return begun ? [say('unfinished', null, unfinishedText(row))] : [];
  }
  if (row.resolvedBy !== undefined) {
    const text = `set PROCESSED without running, ${who(row.resolvedBy, row.resolvedReason)}`;
    return [say('resolved', row.processedAt ?? null, text)];
  }
  const before = row.attempts > 1 && row.lastError !== undefined ? `; the attempt before failed${error}` : '';
  return [say('processed', row.processedAt ?? null, `processed${before}`)];
}

function effectStory(effect: EffectRow | UnreadableRow, consumer: string): StoryLine[] {
  const name = clipped(effectNameOf(effect.SK) ?? effect.SK);
  const line = (what: StoryWord, at: number | null, text: string): StoryLine => ({
    at,
    what,
    consumer,
    text,
  });
  if (isUnreadable(effect))
    return [line('unreadable', null, `the row of effect ${name} ${unreadableText(effect.unreadable)}`)];
  return [
    line('effect-started', effect.startedAt, `effect ${name} began`),
    ...(effect.status === 'COMPLETED'
      ? [
          line(
            'effect-completed',
            effect.completedAt ?? null,
            `effect ${name} completed, its result is stored`,
          ),
        ]
      : []),
    ...(effect.status === 'RELEASED'
      ? [line('effect-released', null, `effect ${name} failed; it is run again with the next attempt`)]
      : []),
  ];
}

function attemptText(attempts: number): string {
  if (attempts === 0) return '';
  return attempts === 1 ? ' after 1 attempt' : ` after ${attempts} attempts`;
}

function who(by: string | undefined, reason: string | undefined): string {
  return `by ${clipped(by ?? 'an operator')}${reason === undefined ? '' : `: ${clipped(reason)}`}`;
}
