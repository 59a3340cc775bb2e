import { isMailroomError } from '../base/errors.ts';
import type { Telemetry } from '../observe/telemetry.ts';
import type { ConsumerContext } from './consumer-context.ts';

/** The calls that a handler has made of its context. */
export interface HandlerCalls {
  readonly claimed: Pick<ConsumerContext, 'telemetry'>;
  /** All of them. */
  readonly calls: Promise<unknown>[];
  /** Those that have not ended, with the text that names each in an error. */
  readonly underWay: Map<TrackedPromise<unknown>, string>;
  /** The failures among these calls and any promises chained to them. */
  readonly failures: FailedCall[];
  readonly state: { readonly returned: boolean; readonly ended: boolean };
}

/** A failed call of a handler, or a failed promise that was chained to one. */
interface FailedCall {
  readonly what: string;
  readonly call: TrackedPromise<unknown>;
  readonly error: unknown;
  /** True if the call was under way when the handler returned, so that its listeners decided nothing. */
  readonly late: boolean;
}

/** The failures that the handler has not seen: without them, it would not know that its work is incomplete. */
export function unseenFailures({ failures }: HandlerCalls): FailedCall[] {
  return failures.filter(({ call, late }) => late || !call.handled);
}

/** Keeps the failure of an un-awaited call from ending the process, and records it so that it fails the message instead. */
export function listened<T>(run: HandlerCalls, what: string, promise: Promise<T>): Promise<T> {
  run.calls.push(promise);
  const tracked = new TrackedPromise(promise, (call, failure) => {
    const wasUnderWay = run.underWay.delete(call);
    if (failure === undefined) return;
    const { error } = failure;
    run.failures.push({ what, call, error, late: wasUnderWay && run.state.returned });
    if (run.state.ended && !call.handled) logUnhandled(run.claimed.telemetry, error);
  });
  run.underWay.set(tracked, what);
  return tracked;
}

/** Logs the failure of an un-awaited call that can no longer fail the message. A call that was too late was logged when it was made. */
export function logUnhandled(telemetry: Telemetry, error: unknown): void {
  if (isMailroomError(error, 'HANDLER_ENDED') || isMailroomError(error, 'AFTER_COMMIT')) return;
  telemetry.log.error('A call that a handler did not await has failed', { error: error as Error });
}

/** Called when a promise has ended, before any of its listeners. */
type OnEnd = (promise: TrackedPromise<unknown>, failure?: { readonly error: unknown }) => void;

/**
 * A promise that records whether it has a listener, and whose failure does not end the process when it has none. Promises that
 * its `then`, `catch` and `finally` return behave the same: chaining to it without awaiting the chain does not count as
 * listening.
 *
 * Functions of Node, such as `tracePromise` of `diagnostics_channel`, listen with the `then` of `Promise.prototype`. That counts as
 * listening, too; it returns an ordinary promise.
 */
class TrackedPromise<T> extends Promise<T> {
  /**
   * Every `then`, also the one of `Promise.prototype`, reads the species of its constructor: the class of the derived promise. It is
   * an ordinary one, because this class's constructor does not take an executor. The accessor is on the prototype: one on each promise would
   * slow down every other promise of the process.
   */
  static {
    Object.defineProperty(TrackedPromise.prototype, 'constructor', {
      get(this: TrackedPromise<unknown>) {
        return Object.defineProperty({}, Symbol.species, { get: () => this.#derived() });
      },
    });
  }

  #handled = false;
  readonly #onEnd: OnEnd;

  constructor(promise: Promise<T>, onEnd: OnEnd) {
    super((resolve, reject) => void promise.then(resolve, reject));
    this.#onEnd = onEnd;
    super.then(
      () => onEnd(this),
      (error: unknown) => onEnd(this, { error }),
    );
    this.#handled = false; // that listener is its own
  }

  #derived(): PromiseConstructor {
    this.#handled = true;
    return Promise;
  }

  /** True if it was awaited, or another promise was chained to it. */
  get handled(): boolean {
    return this.#handled;
  }

  // biome-ignore lint/suspicious/noThenProperty: it is a promise
  override then<A = T, B = never>(
    ok?: ((value: T) => A | PromiseLike<A>) | null,
    failed?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return new TrackedPromise(super.then(ok, failed), this.#onEnd);
  }
}
