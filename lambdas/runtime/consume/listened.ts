/** Is told of a promise that failed. */
type OnFailure = (promise: Listened<unknown>, error: unknown) => void;

/**
 * A promise that knows whether anybody listens to it, and whose failure ends no process when nobody does. What `then`, `catch`
 * and `finally` make of it is one too: whoever chains to it and leaves the chain alone has not listened.
 */
export class Listened<T> extends Promise<T> {
  /** What else is made of it is an ordinary promise: its own constructor takes no executor. */
  static override get [Symbol.species]() {
    return Promise;
  }

  #heard = false;
  readonly #onFailure: OnFailure;

  constructor(promise: Promise<T>, onFailure: OnFailure) {
    super((resolve, reject) => void promise.then(resolve, reject));
    this.#onFailure = onFailure;
    super.then(undefined, (error: unknown) => onFailure(this, error));
  }

  /** Whether somebody awaited it, or chained to it. */
  get heard(): boolean {
    return this.#heard;
  }

  // biome-ignore lint/suspicious/noThenProperty: it is a promise
  override then<A = T, B = never>(
    ok?: ((value: T) => A | PromiseLike<A>) | null,
    failed?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.#heard = true;
    return new Listened(super.then(ok, failed), this.#onFailure);
  }
}
