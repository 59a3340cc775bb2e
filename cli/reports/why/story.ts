import { receiptText } from '../../../lambdas/runtime/base/bridge-receipt.ts';
import { fingerprint } from '../../../lambdas/runtime/base/fingerprint.ts';
import { STALE } from '../../../lambdas/runtime/inbox/inbox-conditions.ts';
import { pastAttemptsOf } from '../../../lambdas/runtime/inbox/past-attempts.ts';
import { isExternalEventId } from '../../../lambdas/runtime/store/external-id.ts';
import type { AttemptEnd, InboxRow } from '../../../lambdas/runtime/store/inbox-row.ts';
import type { OutboxRow } from '../../../lambdas/runtime/store/outbox-row.ts';
import { isUnreadable, readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import { STATE_WORDS } from '../../deployment/effects.ts';
import { attemptText, limitText, unfinishedText, unreadableText } from '../../deployment/row-text.ts';
import { clipped, many } from '../../terminal/output.ts';
import { duration, time } from '../../terminal/times.ts';
import { capturedText } from './captured-words.ts';
import { effectStory } from './effect-story.ts';
import { type OwnLine, type StoryLine, tell } from './story-line.ts';
import { bornAt, type TracedEvent, type TracedMessage } from './trace.ts';

/** The known history of an event, in order of time. */
export function storyOf(event: TracedEvent): StoryLine[] {
  return placedStory(event)
    .sort((a, b) => a.order - b.order)
    .map(({ line }) => line);
}

/** The lines of an event's story, each with its place in time: a line without a time follows the one before it. */
export function placedStory(event: TracedEvent): { readonly line: StoryLine; readonly order: number }[] {
  const begins = bornAt(event);
  const arrives = readable(event.row)?.publishedAt ?? begins;
  const stories = [
    { consumer: null, from: begins, lines: outboxStory(event) },
    ...event.messages.map((message) => ({
      consumer: message.consumer.name,
      from: arrives,
      lines: messageStory(message),
    })),
    ...(event.atSources ?? []).map(({ consumer, row }) => ({
      consumer: consumer.name,
      from: arrives,
      lines: messageStory({ consumer, row }),
    })),
  ];
  return stories.flatMap(({ consumer, from, lines }) => {
    let order = from;
    return lines.map((told) => {
      order = told.at ?? order;
      return { line: { ...told, consumer }, order };
    });
  });
}

function outboxStory(event: TracedEvent): OwnLine[] {
  const { row } = event;
  if (isExternalEventId(event.eventId)) return []; // its publisher has no outbox here
  if (row === undefined && event.resent !== undefined) {
    const { at, consumer, causationId, by, reason } = event.resent;
    return [tell('resent', at, `sent to ${clipped(consumer)} in place of ${causationId} ${who(by, reason)}`)];
  }
  if (row === undefined)
    return [tell('expired', null, 'no outbox row: published and expired, or never committed here')];
  if (isUnreadable(row))
    return [tell('unreadable', null, `the outbox row ${unreadableText(row.unreadable)}`)];
  const committedAt = bornAt(event);
  const lines = bornStory(row, committedAt);
  const tried = row.attempts === 0 ? '' : ` after ${many(row.attempts, 'attempt')}`;
  if (row.deadAt !== undefined) lines.push(tell('dead', row.deadAt, `DEAD${tried}${errorText(row)}`));
  else if (row.lastError !== undefined)
    lines.push(tell('publish-failed', null, `could not be published${tried}${errorText(row)}`));
  if (row.requeuedAt !== undefined)
    lines.push(tell('requeued', row.requeuedAt, `requeued ${who(row.requeuedBy, row.requeuedReason)}`));
  // Unclaimed, it is due when its lease ends.
  if (row.status === 'PENDING' && row.leaseUntil !== row.dueAt) lines.push(pendingLine(row));
  if (row.publishedAt !== undefined) {
    const by = clipped(row.publishedBy ?? 'relay');
    const after = duration(row.publishedAt - committedAt);
    const since = row.dueAt === undefined ? 'its commit' : 'it was due';
    const text =
      row.publishedBy === 'cdc'
        ? `left to change data capture: ${capturedText(event)}`
        : `published by the ${by}, ${after} after ${since}`;
    lines.push(tell('published', row.publishedAt, text));
  }
  if (row.discardedAt !== undefined)
    lines.push(tell('discarded', row.discardedAt, `discarded ${who(row.discardedBy, row.discardedReason)}`));
  return lines;
}

/** The beginning of the story: its commit, or when it was scheduled and is due, or was cancelled. */
function bornStory(
  { status, source, dueAt, scheduledAt, ...row }: OutboxRow,
  committedAt: number,
): OwnLine[] {
  if (dueAt === undefined) return [tell('committed', committedAt, `committed by ${clipped(source)}`)];
  const scheduled = tell('scheduled', scheduledAt, `scheduled by ${clipped(source)}, due ${time(dueAt)}`);
  if (status !== 'CANCELLED')
    return [scheduled, tell('due', dueAt, 'due: the sweep may publish it from now on')];
  return [
    scheduled,
    tell('cancelled', row.cancelledAt, `cancelled by ${clipped(row.cancelledBy ?? source)}`),
  ];
}

function pendingLine({ lastError, leaseUntil }: OutboxRow): OwnLine {
  const text = lastError === undefined ? 'not published yet; from now on it is left to the sweep' : 'retried';
  return tell('next-attempt', leaseUntil, text);
}

/** A message at a consumer; one of another source has neither a queue nor a dead letter here. */
type ToldMessage = Pick<TracedMessage, 'row'> &
  Partial<Pick<TracedMessage, 'failedAt' | 'queue' | 'deadLetter'>> & {
    readonly consumer: Pick<TracedMessage['consumer'], 'name' | 'maxAttempts'>;
  };

function messageStory(message: ToldMessage): OwnLine[] {
  const { consumer, row, deadLetter, queue } = message;
  if (isUnreadable(row)) return [tell('unreadable', null, `its row ${unreadableText(row.unreadable)}`)];
  const lines: OwnLine[] = [];
  if (row === undefined && deadLetter === undefined && queue !== undefined) {
    const held = `${queue.waiting} waiting and ${queue.inFlight} in flight`;
    lines.push(tell('not-arrived', null, `not claimed; its queue has ${held}`));
  }
  if (row !== undefined) lines.push(...pastStory(message, row));
  if (row !== undefined && wasRedriven(row)) lines.push(tell('redriven', null, 'rejected, then redriven'));
  if (row?.claimedAt !== undefined && limitText(row) === undefined && !isStale(row))
    lines.push(tell('claimed', row.claimedAt, `${attemptText(row.attempts, consumer.maxAttempts)} started`));
  if (row !== undefined)
    lines.push(
      ...Object.entries(row.effects ?? {}).flatMap((effect) => effectStory(effect, row)),
      ...statusStory(message, row),
    );
  if (deadLetter !== undefined) {
    const { source, sentAt, expiresAt } = deadLetter;
    const text = `dead letter in ${source.name}: sent ${time(sentAt)}, permanently deleted ${time(expiresAt)}`;
    // A rejected message keeps the time of its first send, which was before its attempts.
    lines.push(tell('dead-letter', source.kind === 'rule' ? sentAt : null, text));
  }
  return lines;
}

/** The attempts before the present state: a line each, with the effects that it ran. */
function pastStory({ consumer }: ToldMessage, row: InboxRow): OwnLine[] {
  const past = pastAttemptsOf(row.pastAttempts);
  const isPresent = limitText(row) !== undefined || past.at(-1)?.ended === PRESENT[row.status];
  return (isPresent ? past.slice(0, -1) : past).map(({ at, attempt, ended, error, effects, wait }) => {
    const ran = Object.entries(effects ?? {}).map(
      ([name, state]) => `${clipped(name)} (${STATE_WORDS[state]})`,
    );
    const how = wait?.limit === undefined ? ENDED[ended] : 'waited for its limit, without counting';
    const said = `${attemptText(attempt, consumer.maxAttempts)} ${how}${errorText({ lastError: error })}`;
    const text = ran.length === 0 ? said : `${said}; effects: ${ran.join(', ')}`;
    return { ...tell('attempt-ended', at, text), cause: [ended, fingerprint(error ?? ''), ...ran].join(' ') };
  });
}

/** The end of the last attempt that the status of its row tells, too. */
const PRESENT: Readonly<Partial<Record<InboxRow['status'], AttemptEnd['ended']>>> = {
  FAILED: 'failed',
  REJECTED: 'rejected',
};

const ENDED: Readonly<Record<AttemptEnd['ended'], string>> = {
  failed: 'failed',
  rejected: 'was rejected',
  released: 'was interrupted and is not counted',
  'no-result': 'ended without a result',
  waited: 'waited as its handler asked, without counting',
};

/** Its last claim started no attempt. */
function isStale(row: InboxRow): boolean {
  return row.status === 'DISCARDED' && row.reason === STALE;
}

/** True if a message was rejected before its present state: its attempts begin again at 1 then. */
function wasRedriven(row: InboxRow): boolean {
  const isResolved = row.status === 'PROCESSED' && row.resolvedBy !== undefined;
  const isStillRejected =
    row.status === 'REJECTED' || (row.status === 'DISCARDED' && !isStale(row)) || isResolved;
  return (row.rejectedIds?.size ?? 0) > (isStillRejected ? 1 : 0);
}

function statusStory({ consumer, failedAt }: ToldMessage, row: InboxRow): OwnLine[] {
  const error = errorText(row);
  const attempt = (nth: number) => attemptText(nth, consumer.maxAttempts);
  switch (row.status) {
    case 'FAILED': {
      const limit = limitText(row);
      if (limit !== undefined) {
        const { at = null } = pastAttemptsOf(row.pastAttempts).at(-1) ?? {};
        const slot =
          row.retryAt === undefined
            ? []
            : [tell('next-attempt', row.retryAt, 'it runs if its limit lets it')];
        return [tell('limited', at, `waits for ${limit}, and no attempt is counted`), ...slot];
      }
      const next = row.attempts + 1;
      const text = next > consumer.maxAttempts ? 'rejected at its next delivery' : attempt(next);
      const failed = tell('failed', failedAt, `${attempt(row.attempts)} failed${error}`);
      return row.retryAt === undefined ? [failed] : [failed, tell('next-attempt', row.retryAt, text)];
    }
    case 'REJECTED': {
      const text = `rejected, ${clipped(row.reason ?? 'for an unknown reason')}${error}`;
      return [tell('rejected', row.rejectedAt, text)];
    }
    case 'DISCARDED': {
      if (isStale(row)) {
        const text = 'discarded as stale: it had waited for longer than its handler takes';
        return [tell('discarded', row.discardedAt, text)];
      }
      const inPlace =
        row.replacedBy === undefined ? '' : `, and sent again with other data as ${row.replacedBy},`;
      const text = `discarded${inPlace} ${who(row.discardedBy, row.discardedReason)}`;
      return [tell('discarded', row.discardedAt, text)];
    }
    case 'PROCESSING': {
      const wasLeft = row.outOfTime === true || row.unfinished !== undefined;
      return wasLeft ? [tell('unfinished', null, unfinishedText(row))] : [];
    }
    case 'PROCESSED': {
      if (row.resolvedBy !== undefined) {
        const by = who(row.resolvedBy, row.resolvedReason);
        return [tell('resolved', row.processedAt, `set PROCESSED without running, ${by}`)];
      }
      if (row.supersededBy !== undefined) {
        const text = `superseded: number ${row.supersededBy} was applied before, and its handler did not run`;
        return [tell('processed', row.processedAt, text)];
      }
      const isRetry = row.attempts > 1 && row.lastError !== undefined;
      return [
        tell(
          'processed',
          row.processedAt,
          `${clipped(receiptText(row.result) ?? 'processed')}${isRetry ? `; the previous attempt failed${error}` : ''}`,
        ),
      ];
    }
  }
}

function errorText({ lastError }: { readonly lastError?: string | undefined }): string {
  return lastError === undefined ? '' : `: ${clipped(lastError)}`;
}

function who(by: string | undefined, reason: string | undefined): string {
  return `by ${clipped(by ?? 'an operator')}${reason === undefined ? '' : `: ${clipped(reason)}`}`;
}
