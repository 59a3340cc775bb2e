/** Called when a promise has ended, before any of its listeners. */
type OnEnd = (promise: TrackedPromise<unknown>, failure?: { readonly error: unknown }) => void;

/**
 * A promise that records whether it has a listener, and whose failure does not end the process when it has none. Promises that
 * its `then`, `catch` and `finally` return behave the same: chaining to it without awaiting the chain does not count as
 * listening.
 */
export class TrackedPromise<T> extends Promise<T> {
  /** Other derived promises are ordinary ones: this class's constructor does not take an executor. */
  static override get [Symbol.species]() {
    return Promise;
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
    this.#handled = true;
    return new TrackedPromise(super.then(ok, failed), this.#onEnd);
  }
}
