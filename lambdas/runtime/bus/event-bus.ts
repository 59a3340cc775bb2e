/** One entry to publish: what EventBridge calls a PutEvents request entry. */
export interface BusEntry {
  /** The service that wrote the event. */
  readonly source: string;
  /** The event's type. */
  readonly detailType: string;
  /** The envelope as JSON. */
  readonly detail: string;
  /** An X-Ray trace header, carried along. */
  readonly traceHeader?: string | undefined;
}

/** What the bus answered for one entry, in the order of the entries. */
export type BusResult =
  | { readonly ok: true; readonly id: string }
  | { readonly ok: false; readonly code: string; readonly message: string };

/** The bus port: the one call that the relay makes to EventBridge. */
export interface Bus {
  /**
   * Publishes up to {@link PUT_EVENTS_ENTRIES_MAX} entries in one call. It is tried once: whoever calls it decides
   * about a retry.
   *
   * @param timeoutMs - the call is given up after this long; its effect may still happen
   * @returns one result per entry
   * @throws when the request as a whole failed; any of the entries may then have been published or not
   */
  put(entries: readonly BusEntry[], timeoutMs: number): Promise<BusResult[]>;
}

/** The most entries of one PutEvents call (EventBridge API reference, PutEvents). */
export const PUT_EVENTS_ENTRIES_MAX = 10;

/** The most bytes of one PutEvents call: below 1 MB since January 2026 (EventBridge quotas). */
export const PUT_EVENTS_BYTES_MAX = 1_000_000;
