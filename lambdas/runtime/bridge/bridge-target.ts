import { isAccessFault } from '../base/aws-errors.ts';
import type { BridgeReceipt } from '../base/bridge-receipt.ts';
import type { ReceivedEvent } from '../events/event.ts';

/** One event on its way to a target. */
export interface BridgedEvent {
  /** The event, for subjects and routing keys. Its `data` is as published. */
  readonly event: ReceivedEvent;
  /** The envelope as JSON, byte for byte as EventBridge delivered it. */
  readonly body: string;
  /** Headers by name; empty for a target without headers. */
  readonly headers: Readonly<Record<string, string>>;
  /** The name of the consumer that sends it. */
  readonly bridge: string;
}

/**
 * The id under which a target drops duplicates: it names the bridge, because a queue, topic or stream can have several, and each must store the event.
 */
export function bridgedId({ bridge, event }: Pick<BridgedEvent, 'bridge' | 'event'>): string {
  return `${bridge}/${event.eventId}`;
}

/**
 * The reason of a refusal. `missing`: the queue, topic, stream or binding does not exist; `denied`: credentials or rights; `unavailable`:
 * any other failure that can pass. These are retried. `too-large` and `invalid` are properties of the event: it alone is rejected.
 */
export type BridgeRefusal = 'missing' | 'denied' | 'unavailable' | 'too-large' | 'invalid';

/** The target's answer for one entry. */
export type BridgeResult =
  | ({ readonly ok: true } & Omit<BridgeReceipt, 'forwardedTo'>)
  | {
      readonly ok: false;
      readonly refusal: BridgeRefusal;
      /** The target's own code and message. */
      readonly code: string;
      readonly message: string;
    };

/**
 * The port of {@link bridge}: a queue, topic, stream or exchange. `sqsTarget`, `snsTarget`, `kinesisTarget`, `kafkaTarget`,
 * `jetStreamTarget` and `rabbitTarget` implement it; so can you.
 */
export interface BridgeTarget {
  /** Its name in receipts, errors and commands, e.g. `topic orders`. Called when something is sent. */
  name(): string;
  /** The limits of one call. */
  readonly limits: {
    /** The maximum number of entries. */
    readonly entries: number;
    /** The maximum size of their bodies and headers, bytes. */
    readonly bytes: number;
    /** The maximum size of one entry, bytes. @default `bytes` */
    readonly entryBytes?: number | undefined;
  };
  /** The prefix of CloudEvents headers. Absent: the target has no headers. */
  readonly cloudEventsPrefix?: string | undefined;
  /**
   * Sends entries. It resolves when the target has stored them, or has refused them.
   *
   * @param known - call it with the index of an entry as soon as its result is known: that result holds although the call does not end in time
   * @returns a result for each entry, in their order
   * @throws an error if no entry was answered: each is retried
   */
  send(
    entries: readonly BridgedEvent[],
    known?: (index: number, result: BridgeResult) => void,
  ): Promise<readonly BridgeResult[]>;
  /** Called when `send` did not answer in time: the next call opens a new connection. */
  reset?(): void;
}

/** Makes the result of a refused entry. */
export function refused(
  refusal: BridgeRefusal,
  code: string,
  message: string,
): Extract<BridgeResult, { ok: false }> {
  return { ok: false, refusal, code, message };
}

/** The refusals of a target by the codes that cause them. Any other code is `unavailable`. */
export type RefusalCodes = readonly (readonly [BridgeRefusal, RegExp])[];

/** Makes the result of an entry that was refused with a code: the target's own, or that of AWS, from which its secret is read. */
export function refusedBy(codes: RefusalCodes, code: string, message: string) {
  if (isAccessFault(code)) return refused('denied', code, message);
  return refused(codes.find(([, those]) => those.test(code))?.[0] ?? 'unavailable', code, message);
}

/** True if a retry of the event cannot succeed. */
export function isPermanent(result: BridgeResult): boolean {
  return !result.ok && (result.refusal === 'too-large' || result.refusal === 'invalid');
}

/** The size of an entry in its message, bytes. */
export function entryBytes({ body, headers }: BridgedEvent): number {
  const names = Object.entries(headers).reduce((sum, pair) => sum + Buffer.byteLength(pair.join('')), 0);
  return Buffer.byteLength(body) + names;
}
