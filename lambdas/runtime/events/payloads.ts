import { isObject } from '../base/json.ts';
import { poison } from '../base/poison.ts';

/** The object that holds the payload of an event, in place of `data` in the event as it is published. */
export interface PayloadReference {
  /** The bucket. */
  readonly bucket: string;
  /** The key: `events/<eventId>`. */
  readonly key: string;
  /** The size of the object in bytes: `data` as JSON in UTF-8. */
  readonly bytes: number;
  /** The SHA-256 of the object, in hexadecimal. */
  readonly sha256: string;
}

/** A new event whose payload may become an object. */
export interface NewPayload {
  readonly eventId: string;
  readonly type: string;
  /** The payload, as JSON. */
  readonly json: string;
  /** The time until the event is published, milliseconds; 0 unless it is scheduled. */
  readonly delayMs: number;
}

/** Keeps the payloads that are too large for an event. `lambdaPayloads` keeps them in S3, `memoryPayloads` in memory. */
export interface Payloads {
  /**
   * Writes the object of a payload above the threshold. Called before the transaction that writes the event.
   *
   * @returns `undefined` if the event carries its payload
   * @throws `EVENT_TOO_LARGE`, `INVALID_EVENT`; `PAYLOADS_UNAVAILABLE` if it could not be written
   */
  write(payload: NewPayload): Promise<PayloadReference | undefined>;
  /**
   * Reads and verifies the object of an event.
   *
   * @returns the payload
   * @throws `PAYLOAD_MISSING`, `PAYLOAD_CHANGED`, `PAYLOAD_NOT_LOADED`: no retry succeeds; `PAYLOADS_UNAVAILABLE`
   */
  read(event: PayloadOwner): Promise<unknown>;
}

/** An event whose payload is an object. */
export interface PayloadOwner {
  readonly type: string;
  readonly payload: PayloadReference;
}

/** The key of the object of an event. */
export function payloadKey(eventId: string): string {
  return `events/${eventId}`;
}

/** Returns true if an envelope has the reference of an object in place of its data. */
export function hasReference(envelope: object): envelope is { readonly payload: PayloadReference } {
  return !('data' in envelope) && 'payload' in envelope;
}

/** The reason why an envelope without data cannot be read, as the end of a sentence; `undefined` if it names an object of its event. */
export function referenceProblem({
  eventId,
  payload,
}: Readonly<Record<string, unknown>>): string | undefined {
  if (payload === undefined) return 'data is missing';
  if (!isObject(payload)) return 'payload is not a reference';
  const { bucket, key, bytes, sha256 } = payload;
  if (typeof bucket !== 'string' || bucket === '') return 'payload.bucket is not a non-empty string';
  // An object of another event would pass as this one's if its hash were given, too.
  if (key !== payloadKey(String(eventId))) return 'payload.key is not the key of its event';
  if (!Number.isSafeInteger(bytes) || Number(bytes) < 1) return 'payload.bytes is not a whole number from 1';
  return typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256)
    ? undefined
    : 'payload.sha256 is not a SHA-256 in hexadecimal';
}

/**
 * Returns an event with its data: an event that carries it unchanged.
 *
 * @param inTime - waits for the object, or throws @default however long it takes
 * @throws as {@link Payloads.read}
 */
export async function withPayload<E extends object>(
  payloads: Payloads | undefined,
  event: E,
  inTime = (read: Promise<unknown>) => read,
): Promise<E> {
  if (!hasReference(event)) return event;
  const owner = event as E & PayloadOwner;
  if (payloads === undefined) throw notLoaded(owner);
  return { ...event, data: await inTime(payloads.read(owner)) };
}

function notLoaded({ type, payload: { bytes } }: PayloadOwner): Error {
  return poison(
    'PAYLOAD_NOT_LOADED',
    `The payload of ${type}, ${bytes} bytes, is an object in S3, and this function loads none. Pass payloads: lambdaPayloads(new S3(clientSettings)) to ` +
      'its lambdaConsumer, set payloads of its Mailroom if it has none, deploy, and redrive the message.',
  );
}
