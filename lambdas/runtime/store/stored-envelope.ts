import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { PUT_EVENTS_BYTES_MAX } from '../bus/event-bus.ts';
import { errorCode } from '../errors.ts';
import { itemBytes } from './item-size.ts';
import type { OutboxRow } from './rows.ts';
import type { Item } from './table.ts';

/** The encoding of a compressed envelope: DEFLATE without a header (RFC 1951). */
const DEFLATE_RAW = 'deflate-raw';

/** The attributes of an outbox row that hold its envelope. */
export interface EncodedEnvelope {
  /** The envelope as JSON: the EventBridge `detail`, byte for byte. Compressed where `encoding` is there. */
  readonly envelope: string | Uint8Array;
  /** How `envelope` is compressed. Absent: it is text. */
  readonly encoding?: typeof DEFLATE_RAW | undefined;
}

/** An outbox row as it is stored: its envelope may be compressed. */
export type StoredOutboxRow = Omit<OutboxRow, 'envelope'> & EncodedEnvelope;

/** One write unit holds so many bytes of an item (DynamoDB developer guide, "Read/write capacity mode"). */
const WRITE_UNIT_BYTES = 1_024;

/** `publishedAt`, `publishedBy`, `expiresAt` and the longer status: the bytes by which the mark makes a row larger. */
const MARK_BYTES = 56;

/**
 * The write units of an event: its row is put in a transaction, at two units a started KB, and marked once, at one (DynamoDB
 * developer guide, "Transactional reads and writes").
 */
function writeUnits(rowBytes: number): number {
  return 2 * Math.ceil(rowBytes / WRITE_UNIT_BYTES) + Math.ceil((rowBytes + MARK_BYTES) / WRITE_UNIT_BYTES);
}

/**
 * Chooses how an envelope is stored: as text, which can be read in the console, unless compressing it saves a write unit.
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

/** Whether this version knows how the envelope of a row is encoded. */
export function isKnownEncoding(encoding: unknown): boolean {
  return encoding === undefined || encoding === DEFLATE_RAW;
}

/**
 * The envelope of a row as JSON. At most as many bytes are inflated as EventBridge takes: a row that holds more cannot be
 * published, and must not exhaust the memory of whoever reads it.
 *
 * @param item - an outbox row as it was read. In an image of the stream, as Lambda hands it out, binary is base64 text.
 * @returns the `problem`, as the end of a sentence, where there is no envelope to be read
 */
export function envelopeJson({
  envelope,
  encoding,
}: Item): { readonly json: string; readonly problem?: undefined } | { readonly problem: string } {
  if (!isKnownEncoding(encoding))
    return { problem: `its "encoding" is ${shown(encoding)}, and this version reads ${DEFLATE_RAW}` };
  if (encoding === undefined) {
    if (envelope === undefined) return { problem: 'it has no "envelope"' };
    return typeof envelope === 'string' ? { json: envelope } : { problem: 'its "envelope" is not a text' };
  }
  const bytes = typeof envelope === 'string' ? Buffer.from(envelope, 'base64') : envelope;
  if (!(bytes instanceof Uint8Array)) return { problem: `its "envelope" is not ${DEFLATE_RAW}` };
  try {
    return { json: inflateRawSync(bytes, { maxOutputLength: PUT_EVENTS_BYTES_MAX }).toString() };
  } catch (error) {
    return { problem: `its "envelope" cannot be inflated (${errorCode(error)})` };
  }
}

function shown(encoding: unknown): string {
  return typeof encoding === 'string' ? JSON.stringify(encoding.slice(0, 40)) : 'not a text';
}
