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
export class TrackedPromise<T> extends Promise<T> {
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
