import type { Clock } from '../clock.ts';
import type { ConsumerConfig } from '../config.ts';
import { isErrorWithCode, isTransactionCancelled, MailroomError } from '../errors.ts';
import type { Envelope } from '../event.ts';
import type { Inbox } from '../store/inbox.ts';
import type { Claim } from '../store/inbox-conditions.ts';
import type { TransactAction } from '../store/table.ts';
import type { Telemetry } from '../telemetry.ts';
import type { Commit, Outbox } from '../write/outbox.ts';
import { checkTransaction, eventCount } from '../write/transaction-checks.ts';
import type { EffectInProgress } from './effect-persistence.ts';
import type { LeasedContext } from './handler.ts';
import type { JsonOf } from './json-of.ts';
import { Listened } from './listened.ts';
import type { Effects } from './once.ts';
import { isOutage, isOutageOf } from './outage.ts';

/** What the context of a leased handler needs. */
export interface LeasedContextDeps {
  readonly config: Pick<ConsumerConfig, 'tableName'>;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly inbox: Inbox;
  readonly outbox: Outbox;
}

/** What a handler has done so far that decides about its message. */
interface ContextState {
  /** `unknown`: a commit whose answer was lost, and which may still happen. */
  commit:
    | { readonly kind: 'none' | 'running' | 'done' }
    | { readonly kind: 'unknown'; readonly error: unknown };
  /** The commit that is under way; it never rejects. */
  committing: Promise<void>;
  blocked: EffectInProgress | undefined;
  /** The last call that failed because the table could not be reached: no attempt counts then. */
  outage: { readonly error: unknown } | undefined;
  /** How many calls to the table the handler waits for. */
  waiting: number;
  /** What failed of the calls that the handler made, and of what it chained to them. */
  readonly failures: { readonly call: Listened<unknown>; readonly error: unknown }[];
  /** Whether the handler is over: what it left behind may begin nothing more. */
  ended: boolean;
}

/**
 * Makes what a leased handler is given, and keeps what it does with it.
 *
 * @param signal - aborted when the handler must stop
 */
export function createLeasedContext(
  deps: LeasedContextDeps,
  event: Envelope,
  claim: Claim,
  effects: Effects,
  signal: AbortSignal,
): { readonly ctx: LeasedContext; readonly state: ContextState } {
  const { config, clock, telemetry, inbox, outbox } = deps;
  const state: ContextState = {
    commit: { kind: 'none' },
    committing: Promise.resolve(),
    blocked: undefined,
    outage: undefined,
    waiting: 0,
    failures: [],
    ended: false,
  };

  function refuseWhenEnded(what: string): void {
    if (!state.ended) return;
    const error = new MailroomError(
      'HANDLER_ENDED',
      `${what} after its handler had returned: the message is settled without it. Await everything that the handler begins.`,
    );
    telemetry.log.error(error.message, { eventId: event.eventId });
    throw error;
  }

  async function once<T>(
    name: string,
    effect: (idempotencyKey: string, signal: AbortSignal) => Promise<T>,
  ): Promise<JsonOf<T>> {
    refuseWhenEnded(`ctx.once("${name}")`);
    if (state.commit.kind !== 'none') throw afterCommit(`ctx.once("${name}")`);
    signal.throwIfAborted();
    let thrown: { readonly error: unknown } | undefined;
    const watched = async (idempotencyKey: string) => {
      state.waiting -= 1;
      try {
        return await effect(idempotencyKey, signal);
      } catch (error) {
        thrown = { error }; // the provider's failure, however much it looks like one of the table
        throw error;
      } finally {
        state.waiting += 1;
      }
    };
    state.waiting += 1;
    try {
      return await effects.once(name, watched);
    } catch (error) {
      if (isErrorWithCode(error, 'EFFECT_IN_PROGRESS')) state.blocked = error as EffectInProgress;
      else if (thrown?.error !== error && isOutage(error)) state.outage = { error };
      throw error;
    } finally {
      state.waiting -= 1;
    }
  }

  async function commit({ writes = [], events = [] }: Commit): Promise<void> {
    refuseWhenEnded('ctx.commit');
    if (state.commit.kind !== 'none') throw afterCommit('ctx.commit');
    if (state.blocked !== undefined) throw state.blocked;
    signal.throwIfAborted();
    state.commit = { kind: 'running' }; // before the first await: two at once must not both pass
    let sent = false;
    let actions: TransactAction[] = [];
    try {
      actions = [...writes, ...(await outbox.entries(events, event))];
      checkTransaction(actions, clock.now(), 1);
      sent = true;
      state.waiting += 1;
      await inbox.commit(claim, actions);
      state.commit = { kind: 'done' };
      telemetry.count('EventsCommitted', eventCount(actions));
    } catch (error) {
      // Only a refusal says that nothing was written, and so lets the handler commit something else.
      const refused = !sent || isTransactionCancelled(error) || isErrorWithCode(error, 'FENCE_LOST');
      state.commit = refused ? { kind: 'none' } : { kind: 'unknown', error };
      if (sent && isOutageOf(actions, config.tableName, error)) state.outage = { error };
      throw error;
    } finally {
      if (sent) state.waiting -= 1;
    }
  }

  return {
    state,
    ctx: {
      attempt: claim.attempt,
      signal,
      remainingMs: () => Math.max(0, claim.endsBy - clock.now()),
      once: (name, effect) => listened(once(name, effect)),
      commit: (wanted) => {
        const result = commit(wanted);
        const settled = result.catch(() => {});
        state.committing = Promise.all([state.committing, settled]).then(() => {});
        return listened(result);
      },
    },
  };

  /** A call that the handler does not await ends no process when it fails; the failure is kept, and fails the message instead. */
  function listened<T>(promise: Promise<T>): Promise<T> {
    return new Listened(promise, (call, error) => {
      state.failures.push({ call, error });
      const logged = isErrorWithCode(error, 'HANDLER_ENDED');
      if (state.ended && !call.heard && !logged) logUnheard(telemetry, event, error);
    });
  }
}

/** Says in the log what failed while nobody awaited it, where that cannot fail the message. */
export function logUnheard(telemetry: Telemetry, { eventId }: Envelope, error: unknown): void {
  telemetry.log.error('What a handler began and did not await has failed', {
    eventId,
    error: error as Error,
  });
}

function afterCommit(what: string): MailroomError {
  return new MailroomError(
    'AFTER_COMMIT',
    `${what} after ctx.commit: a message is committed once, and that is the last thing its handler does. Put everything into one commit.`,
  );
}
