import { withDeadline } from '../base/clock.ts';
import type { HandledEvent } from '../events/external-event.ts';
import { forgottenBecause, wasSettledUnread } from '../inbox/inbox-history.ts';
import { traceContextOf } from '../observe/trace-context.ts';
import type { TracerSpan } from '../observe/tracer.ts';
import type { CausedDraft } from './batch-commit.ts';
import { type BatchHandler, batchCommitOf } from './batch-handler.ts';
import type { ConsumerContext, Received } from './consumer-context.ts';
import type { BatchEnd } from './inbox-port.ts';
import { outOfTime, RESPONSE_MARGIN_MS } from './leased-run.ts';
import { readEvent } from './message.ts';
import { type MessageOutcome, report, reportOutage, START_MIN_MS, tooLate } from './message-outcome.ts';
import { onFreshReads } from './transactional-run.ts';

/** Messages of one handler, each received for the first time and with another event. */
export interface MessageSet {
  readonly handler: BatchHandler;
  readonly messages: readonly Received[];
  /** Processes a message on its own. @param claimFirst - it has a row, or may have one */
  readonly alone: (message: Received, claimFirst: boolean) => Promise<MessageOutcome>;
}

/** A message whose event its handler can receive. */
interface SetMember {
  readonly message: Received;
  readonly event: HandledEvent;
}

type Outcomes = Map<Received, MessageOutcome>;

/**
 * Processes a set of messages in as few transactions as possible. A failure of several messages counts for none of them: they are tried in halves, down to
 * one, whose failure is its own. It never throws.
 *
 * @returns the outcome of each, in the order of `messages`
 */
export async function runSet(ctx: ConsumerContext, set: MessageSet): Promise<MessageOutcome[]> {
  const outcomes: Outcomes = new Map();
  const members: SetMember[] = [];
  const others: Received[] = [];
  for (const message of set.messages) {
    const event = await eventOf(set, message);
    if (event === undefined) others.push(message);
    else members.push({ message, event });
  }
  members.sort((a, b) => (a.event.eventId < b.event.eventId ? -1 : 1));
  await Promise.all([
    runMembers(ctx, set, members, outcomes),
    ...others.map((one) => runOne(set, one, outcomes)),
  ]);
  return set.messages.map((message) => outcomes.get(message) ?? tooLate(message));
}

/** The event of a message that may share a transaction; `undefined` if it must be processed on its own. */
async function eventOf(
  { handler }: MessageSet,
  { inbox, delivery }: Received,
): Promise<HandledEvent | undefined> {
  const { content, body, message } = delivery;
  if (!('envelope' in content)) return undefined;
  try {
    await inbox.open();
    if (forgottenBecause(inbox.rules, message.eventId) !== undefined) return undefined;
    if (await wasSettledUnread(inbox.rules, body, inbox.read)) return undefined;
    return await readEvent(handler.definition, content.envelope);
  } catch {
    return undefined; // reported where it is processed on its own
  }
}

async function runOne({ alone }: MessageSet, message: Received, outcomes: Outcomes, claimFirst = false) {
  outcomes.set(message, await alone(message, claimFirst));
}

/** Runs the members together; those that have a row, or all of them after a failure, in smaller parts. */
async function runMembers(
  ctx: ConsumerContext,
  set: MessageSet,
  members: readonly SetMember[],
  outcomes: Outcomes,
): Promise<void> {
  const [first] = members;
  if (first === undefined) return;
  if (members.length === 1) return runOne(set, first.message, outcomes);
  const end = await commitTogether({ ctx, handler: set.handler, members, span: first.message.span });
  if (end.is === 'rows') {
    const hasRow = ({ message }: SetMember) => end.of.has(message.delivery.message.eventId);
    const ready = members.filter((member) => !hasRow(member));
    const claimed = members.filter(hasRow);
    await Promise.all([
      runMembers(ctx, set, ready, outcomes),
      ...claimed.map(({ message }) => runOne(set, message, outcomes, true)),
    ]);
    return;
  }
  if (end.is === 'ended') {
    for (const { message } of members) outcomes.set(message, end.outcomeOf(message));
    return;
  }
  const { telemetry } = first.message;
  telemetry.count('BatchesSplit');
  telemetry.log.warn('A batch of messages failed, and is tried in halves; no attempt is counted', {
    error: end.error as Error,
    messages: members.length,
  });
  const half = Math.ceil(members.length / 2);
  await runMembers(ctx, set, members.slice(0, half), outcomes);
  await runMembers(ctx, set, members.slice(half), outcomes);
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
    const end = await onFreshReads(ctx, remainingMs, async () => {
      const committed = await commitOnce(together, remainingMs);
      if (committed.status === 'failed' && !committed.isOutage) throw committed.error;
      return committed;
    });
    return togetherEnd(ctx, end, members.length);
  } catch (error) {
    return { is: 'failed', error };
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
  { ctx: { inbox, clock, config }, handler, members, span }: Together,
  remainingMs: () => number,
): Promise<BatchEnd> {
  const events = members.map(({ event }) => event);
  const { type } = handler.definition;
  const given = { remainingMs, logFields: { consumer: config.consumer, eventType: type } };
  const work = async () => {
    const handled = span.run(() => batchCommitOf(handler, events, given));
    const commit = await withDeadline(clock, remainingMs() - RESPONSE_MARGIN_MS, handled, (): never => {
      throw outOfTime();
    });
    return { ...commit, events: commit.events.map((caused) => inTraceOfCause(members, caused)) };
  };
  const messages = members.map(({ message }) => message.delivery.message);
  return (await inbox.commitBatch?.(messages, work)) ?? { status: 'rows', of: messages };
}

/** The trace of a new event is that of the message that caused it, not that of the whole batch. */
function inTraceOfCause(members: readonly SetMember[], { draft, cause }: CausedDraft): CausedDraft {
  if (traceContextOf(draft) !== undefined) return { draft, cause };
  const member = members.find(({ event }) => event.eventId === cause.eventId);
  return { draft: { ...draft, ...member?.message.span.context() }, cause };
}

function togetherEnd(ctx: ConsumerContext, end: BatchEnd, messages: number): TogetherEnd {
  if (end.status === 'rows') return { is: 'rows', of: new Set(end.of.map(({ eventId }) => eventId)) };
  // Also after a lost response: if the transaction happens, the messages come again as duplicates.
  if (end.status === 'failed') return ended((message) => reportOutage(message, end.error));
  ctx.telemetry.count('EventsCommitted', end.events);
  return ended((message) => {
    message.span.set('messaging.batch.message_count', messages);
    return report(message, { is: 'processed' });
  });
}
