import { isMailroomError } from '../base/errors.ts';
import type { HandledEvent } from '../events/external-event.ts';
import { forgottenBecause, wasSettledUnread } from '../inbox/inbox-history.ts';
import { traceContextOf } from '../observe/trace-context.ts';
import type { TracerSpan } from '../observe/tracer.ts';
import type { CausedDraft } from './batch-commit.ts';
import { type BatchHandler, batchCommitOf } from './batch-handler.ts';
import type { ConsumerContext, Received } from './consumer-context.ts';
import { hasExpired } from './expiry.ts';
import { type InTime, inTimeOf } from './in-time.ts';
import type { BatchEnd, CommitFailure } from './inbox-port.ts';
import { payloadInTime } from './load-payload.ts';
import { freshEvent } from './message.ts';
import {
  type MessageOutcome,
  report,
  reportOutage,
  reportOutOfTime,
  START_MIN_MS,
  tooLate,
} from './message-outcome.ts';
import { isConflictOnly, isOutageOfAll } from './outage.ts';
import { onFreshReads } from './transactional-run.ts';

/** Messages of one handler, each received for the first time and with another event. */
export interface MessageSet {
  readonly handler: BatchHandler;
  readonly messages: readonly Received[];
  /** Processes a message on its own. @param claimFirst - it has a row, or may have one */
  readonly alone: (message: Received, claimFirst: boolean) => Promise<MessageOutcome>;
  /** Called once for each message, as soon as its outcome is known. */
  readonly ended: (message: Received, outcome: MessageOutcome) => void;
}

/** A message whose event its handler can receive. Each run reads it again: a handler may change the event that it receives. */
interface SetMember {
  readonly message: Received;
  readonly envelope: HandledEvent;
}

/**
 * Processes a set of messages in as few transactions as possible. A failure of several messages counts for none of them: they are tried in halves, down to
 * one, whose failure is its own. It never throws.
 */
export async function runSet(ctx: ConsumerContext, set: MessageSet): Promise<void> {
  const members: SetMember[] = [];
  const others: Received[] = [];
  const read = async (message: Received) => {
    const envelope = await readable(set, message);
    if (envelope === undefined) others.push(message);
    else members.push({ message, envelope });
  };
  await Promise.all(set.messages.map(read));
  members.sort((a, b) => (a.envelope.eventId < b.envelope.eventId ? -1 : 1));
  await Promise.all([runMembers(ctx, set, members), ...others.map((one) => runOne(set, one))]);
}

/** The envelope of a message that may share a transaction; `undefined` if it must be processed on its own. */
async function readable({ handler }: MessageSet, received: Received): Promise<HandledEvent | undefined> {
  const { inbox, delivery } = received;
  const { content, body, message } = delivery;
  if (!('envelope' in content) || hasExpired(received, handler)) return undefined;
  try {
    await inbox.open();
    if (forgottenBecause(inbox.rules, message.eventId) !== undefined) return undefined;
    if (await wasSettledUnread(inbox.rules, body, inbox.read)) return undefined;
    const envelope = await payloadInTime(received, content.envelope);
    await freshEvent(handler.definition, envelope);
    return envelope;
  } catch {
    return undefined; // reported where it is processed on its own
  }
}

async function runOne({ alone, ended }: MessageSet, message: Received, claimFirst = false) {
  ended(message, await alone(message, claimFirst));
}

/** Runs the members together; those that have a row or have expired on their own, and all of them in halves after a failure. */
async function runMembers(
  ctx: ConsumerContext,
  set: MessageSet,
  members: readonly SetMember[],
): Promise<void> {
  const [first] = members;
  if (first === undefined) return;
  if (members.length === 1) return runOne(set, first.message);
  const apart = async (ones: ReadonlySet<SetMember>, claimFirst: boolean) => {
    const others = members.filter((member) => !ones.has(member));
    await Promise.all([
      runMembers(ctx, set, others),
      ...[...ones].map(({ message }) => runOne(set, message, claimFirst)),
    ]);
  };
  // Also those that expired while a larger part ran.
  const expired = members.filter(({ message }) => hasExpired(message, set.handler));
  if (expired.length > 0) return apart(new Set(expired), false);
  const end = await commitTogether({ ctx, handler: set.handler, members, span: first.message.span });
  if (end.is === 'rows') {
    const claimed = members.filter(({ message }) => end.of.has(message.delivery.message.eventId));
    return apart(new Set(claimed), true);
  }
  if (end.is === 'ended') {
    for (const { message } of members) set.ended(message, end.outcomeOf(message));
    return;
  }
  const { telemetry } = first.message;
  telemetry.count('BatchesSplit');
  telemetry.log.warn('A batch of messages failed, and is tried in halves; no attempt is counted', {
    error: end.error as Error,
    messages: members.length,
    eventIds: members.map(({ envelope }) => envelope.eventId),
  });
  const half = Math.ceil(members.length / 2);
  await runMembers(ctx, set, members.slice(0, half));
  await runMembers(ctx, set, members.slice(half));
}

/** Several messages that share a transaction. `span`: that of the first one, in which their handler runs */
interface Together {
  readonly ctx: ConsumerContext;
  readonly handler: BatchHandler;
  readonly members: readonly SetMember[];
  readonly span: TracerSpan;
}

/** The end of one try with several messages. */
type TogetherEnd =
  /** It is the end of all of them. */
  | { readonly is: 'ended'; readonly outcomeOf: (message: Received) => MessageOutcome }
  /** Those with these event ids have a row; nothing was written. */
  | { readonly is: 'rows'; readonly of: ReadonlySet<string> }
  | { readonly is: 'failed'; readonly error: unknown };

async function commitTogether(together: Together): Promise<TogetherEnd> {
  const { ctx, members } = together;
  const endsBy = Math.min(...members.map(({ message }) => message.delivery.endsBy));
  const remainingMs = () => Math.max(0, endsBy - ctx.clock.now());
  if (remainingMs() < START_MIN_MS) return ended(tooLate);
  try {
    const run = async () => {
      const committed = await commitOnce(together, remainingMs, inTimeOf(ctx.clock, endsBy));
      if (committed.status === 'failed') throw committed.error;
      return committed;
    };
    const end = await onFreshReads(
      ctx,
      remainingMs,
      run,
      (error) => ctx.inbox.isConflict(error) || isConflictOnly(error),
    );
    return togetherEnd(ctx, end, members.length);
  } catch (error) {
    if (isMailroomError(error, 'OUT_OF_TIME')) return ended((message) => reportOutOfTime(message, error));
    // Of a read of the handler, or of the transaction. If the transaction happens after a lost response, the messages come again as duplicates.
    return isOutageOfAll(error) ? ended((message) => reportOutage(message, error)) : { is: 'failed', error };
  }
}

function ended(outcomeOf: (message: Received) => MessageOutcome): TogetherEnd {
  return { is: 'ended', outcomeOf };
}

/**
 * When the function's time is nearly up, the handler continues, and its result is ignored: nothing is begun any more, so all messages return without an
 * attempt.
 */
async function commitOnce(
  { ctx: { inbox, config }, handler, members, span }: Together,
  remainingMs: () => number,
  inTime: InTime,
): Promise<BatchEnd> {
  const { definition } = handler;
  const given = { remainingMs, logFields: { consumer: config.consumer, eventType: definition.type } };
  const work = async () => {
    const handled = span.run(async () => {
      const events = await Promise.all(members.map(({ envelope }) => freshEvent(definition, envelope)));
      return batchCommitOf(handler, events, given, members[0]?.message.telemetry);
    });
    const commit = await inTime(handled);
    return { ...commit, events: commit.events.map((caused) => inTraceOfCause(members, caused)) };
  };
  const messages = members.map(({ message }) => message.delivery.message);
  return (await inbox.commitBatch?.(messages, work, inTime)) ?? { status: 'rows', of: messages };
}

/** The trace of a new event is that of the message that caused it, not that of the whole batch. */
function inTraceOfCause(members: readonly SetMember[], { draft, cause }: CausedDraft): CausedDraft {
  if (traceContextOf(draft) !== undefined) return { draft, cause };
  const member = members.find(({ envelope }) => envelope.eventId === cause.eventId);
  return { draft: { ...draft, ...member?.message.span.context() }, cause };
}

function togetherEnd(
  ctx: ConsumerContext,
  end: Exclude<BatchEnd, CommitFailure>,
  messages: number,
): TogetherEnd {
  if (end.status === 'rows') return { is: 'rows', of: new Set(end.of.map(({ eventId }) => eventId)) };
  ctx.telemetry.count('EventsCommitted', end.events);
  return ended((message) => {
    message.span.set('messaging.batch.message_count', messages);
    return report(message, { is: 'processed' });
  });
}
