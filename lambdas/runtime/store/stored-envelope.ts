import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { errorCode } from '../base/errors.ts';
import { PUT_EVENTS_BYTES_MAX } from '../bus/event-bus.ts';
import { itemBytes } from './item-size.ts';
import type { OutboxRow } from './outbox-row.ts';
import type { Item } from './table.ts';

/** The encoding of a compressed envelope: DEFLATE without a header (RFC 1951). */
const DEFLATE_RAW = 'deflate-raw';

/** The attributes of an outbox row that hold its envelope. */
export interface EncodedEnvelope {
  /** The envelope as JSON: the EventBridge `detail`, byte for byte. Compressed if `encoding` is set. */
  readonly envelope: string | Uint8Array;
  /** The compression of `envelope`. Absent: it is text. */
  readonly encoding?: 'deflate-raw' | undefined;
}

/** Refuses bytes that are not UTF-8: DEFLATE has no checksum, and damaged text must not be published. */
const UTF_8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** An outbox row as it is stored: its envelope may be compressed. */
export type StoredOutboxRow = Omit<OutboxRow, 'envelope'> & EncodedEnvelope;

/** The bytes of an item that one write unit covers (DynamoDB developer guide, "Read/write capacity mode"). */
const WRITE_UNIT_BYTES = 1_024;

/** The bytes that the mark adds to a row, at most: `publishedAt`, `publishedBy`, `expiresAt` and the longer status. */
const MARK_BYTES = 58;

/**
 * The write units of an event: its row is put in a transaction, at two units a started KB, and marked once, at one (DynamoDB
 * developer guide, "Transactional reads and writes").
 */
function writeUnits(rowBytes: number): number {
  return 2 * Math.ceil(rowBytes / WRITE_UNIT_BYTES) + Math.ceil((rowBytes + MARK_BYTES) / WRITE_UNIT_BYTES);
}

/**
 * Encodes an envelope for storage: as text, which is readable in the console, unless compressing it saves a write unit.
 *
 * @param row - the other attributes of its outbox row
 */
export function storedEnvelope(json: string, row: Item): EncodedEnvelope {
  const text: EncodedEnvelope = { envelope: json };
  const textUnits = writeUnits(itemBytes({ ...row, ...text }));
  if (textUnits === writeUnits(0)) return text;
  const compressed: EncodedEnvelope = { envelope: deflateRawSync(json), encoding: DEFLATE_RAW };
  return writeUnits(itemBytes({ ...row, ...compressed })) < textUnits ? compressed : text;
}

/** Returns true if this version can read the encoding of a row's envelope. */
export function isKnownEncoding(encoding: unknown): boolean {
  return encoding === undefined || encoding === DEFLATE_RAW;
}

/**
 * Reads the envelope of a row as JSON. It inflates no more bytes than EventBridge accepts: a larger envelope could not be
 * published, and must not exhaust the reader's memory.
 *
 * @param item - an outbox row as it was read; in the stream images that Lambda delivers, binary is base64 text
 * @returns the `problem`, as the end of a sentence, if the envelope cannot be read
 */
export function envelopeJson({
  envelope,
  encoding,
}: Item): { readonly json: string; readonly problem?: undefined } | { readonly problem: string } {
  if (!isKnownEncoding(encoding))
    return { problem: `its "encoding" is ${shown(encoding)}, and this version reads ${DEFLATE_RAW}` };
  if (encoding === undefined) {
    if (envelope === undefined) return { problem: 'it has no "envelope"' };
    return typeof envelope === 'string' ? { json: envelope } : { problem: 'its "envelope" is not a string' };
  }
  const bytes = typeof envelope === 'string' ? Buffer.from(envelope, 'base64') : envelope;
  if (!(bytes instanceof Uint8Array)) return { problem: `its "envelope" is not ${DEFLATE_RAW}` };
  try {
    return { json: UTF_8.decode(inflateRawSync(bytes, { maxOutputLength: PUT_EVENTS_BYTES_MAX })) };
  } catch (error) {
    return { problem: `its "envelope" cannot be inflated (${errorCode(error)})` };
  }
}

function shown(encoding: unknown): string {
  return typeof encoding === 'string' ? JSON.stringify(encoding.slice(0, 40)) : 'not a string';
}
