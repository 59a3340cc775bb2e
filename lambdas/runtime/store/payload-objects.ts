import { createHash } from 'node:crypto';
import { errorCode, errorMessage, isMailroomError, MailroomError } from '../base/errors.ts';
import { parseJson } from '../base/json.ts';
import type { PayloadConfig } from '../base/payload-config.ts';
import { poison } from '../base/poison.ts';
import { DAY_MS } from '../base/units.ts';
import {
  type NewPayload,
  type PayloadOwner,
  type PayloadReference,
  type Payloads,
  payloadKey,
} from '../events/payloads.ts';

/** The largest payload, bytes: a consumer holds those of a whole batch in memory. */
const PAYLOAD_BYTES_MAX = 32 * 1024 * 1024;

/** An object as it was found. */
interface FoundObject {
  readonly bytes: number;
  /** Reads its content. */
  content(): Promise<Uint8Array>;
  /** Ends its transfer, in place of reading it. @default it holds no connection */
  discard?(): void;
}

/** Stores objects. */
export interface PayloadObjects {
  /** Writes an object that S3 compares with its hash. */
  put(key: string, content: Uint8Array, sha256: string): Promise<void>;
  /** Finds an object. @returns `undefined` if it does not exist */
  get(key: string): Promise<FoundObject | undefined>;
}

/**
 * Keeps payloads as objects.
 *
 *     object written    transaction commits    published    received, verified    lifetime ends
 *          |-------------------|-------------------|---------------|------------------|
 *          |<- a crash here leaves an orphan       |               |                  | orphans expire, too
 *
 * Invariants: an event that was committed has had its object; a handler receives only the bytes whose hash its event names.
 */
export function payloadsIn(objects: PayloadObjects, config: PayloadConfig): Payloads {
  return {
    write: (payload) => writeObject(objects, config, payload),
    read: (event) => readObject(objects, config, event),
  };
}

async function writeObject(
  objects: PayloadObjects,
  { bucket, aboveBytes, aheadDays, inline }: PayloadConfig,
  { eventId, type, json, delayMs }: NewPayload,
): Promise<PayloadReference | undefined> {
  const content = Buffer.from(json);
  const bytes = content.byteLength;
  if (bytes <= aboveBytes || inline.includes(type)) return undefined;
  if (bytes > PAYLOAD_BYTES_MAX)
    throw new MailroomError(
      'EVENT_TOO_LARGE',
      `The payload of ${type} has ${bytes} bytes; at most ${PAYLOAD_BYTES_MAX} can be stored in S3 for it. Store the large part yourself, and put its address in the event.`,
    );
  if (delayMs > aheadDays * DAY_MS)
    throw new MailroomError(
      'INVALID_EVENT',
      `Event ${type}: deliverAt is more than ${aheadDays} days ahead, and its payload of ${bytes} bytes is an object that would expire before its consumers need it. ` +
        'Raise payloads.lifetime of the Mailroom, or schedule a small event whose handler publishes this one.',
    );
  const reference = { bucket, key: payloadKey(eventId), bytes, sha256: hashOf(content) };
  await available('write', reference, () => objects.put(reference.key, content, reference.sha256));
  return reference;
}

async function readObject(
  objects: PayloadObjects,
  { bucket }: PayloadConfig,
  { type, payload }: PayloadOwner,
): Promise<unknown> {
  if (payload.bucket !== bucket)
    throw poison(
      'PAYLOAD_NOT_LOADED',
      `The payload of ${type} is in the bucket ${payload.bucket}, and this function reads only ${bucket}, that of its own Mailroom. Handle the event in a ` +
        `consumer of the Mailroom that publishes it, or resend it with the data of ${placeOf(payload)}. Discard the message only then: that object is its payload.`,
    );
  const found = await available('read', payload, () => objects.get(payload.key));
  const changed = (what: string) =>
    poison(
      'PAYLOAD_CHANGED',
      `The payload of ${type} is not the one that was published: ${placeOf(payload)} ${what}. Restore the object, and redrive the message; otherwise discard it.`,
    );
  if (found === undefined)
    throw poison(
      'PAYLOAD_MISSING',
      `The payload of ${type} is missing: ${placeOf(payload)} was deleted, for example to erase it, or has expired. Restore the object, and redrive the message; otherwise discard it.`,
    );
  const isOther = found.bytes !== payload.bytes;
  if (isOther || found.bytes > PAYLOAD_BYTES_MAX) {
    found.discard?.();
    throw changed(
      isOther
        ? `has ${found.bytes} bytes, and the event names ${payload.bytes}`
        : `has more than ${PAYLOAD_BYTES_MAX} bytes`,
    );
  }
  const content = await available('read', payload, () => found.content());
  if (hashOf(content) !== payload.sha256) throw changed('has another SHA-256 than the event names');
  return parsed(content, changed);
}

/** The content is what the event names, so only the code of its producer can be at fault. */
function parsed(content: Uint8Array, changed: (what: string) => Error): unknown {
  try {
    return parseJson(Buffer.from(content).toString());
  } catch {
    throw changed('is not JSON, or nested too deeply');
  }
}

/** A denial is an outage, too: the message is not at fault, and a deployment can end it. */
async function available<T>(
  what: 'read' | 'write',
  reference: PayloadReference,
  call: () => Promise<T>,
): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (isMailroomError(error)) throw error;
    throw new MailroomError(
      'PAYLOADS_UNAVAILABLE',
      `S3 did not ${what} ${placeOf(reference)}: ${errorMessage(error).slice(0, 300)} (${errorCode(error)}). ` +
        "If it persists, check the function's permissions on the bucket and its key.",
      { cause: error },
    );
  }
}

function placeOf({ bucket, key }: PayloadReference): string {
  return `s3://${bucket}/${key}`;
}

function hashOf(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}
