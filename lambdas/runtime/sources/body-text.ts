import { isUtf8 } from 'node:buffer';
import { parseJson } from '../base/json.ts';
import { poison } from '../base/poison.ts';

/** The remedy for a body that is not JSON. */
export const DECODE =
  'Turn it into JSON with decode of createInboxProcessor (docs/sources.md), or find its sender.';

/** The bytes that serializers of a schema registry write before a value, with their length. None of them can begin JSON. */
const FRAMES = [
  { magic: [0x00], length: 5, name: "framed by Confluent's serializers, as Avro or Protobuf" },
  { magic: [0x00], length: 9, name: "framed by Apicurio's serializers, as Avro or Protobuf" },
  { magic: [0x03, 0x00], length: 18, name: 'framed by the AWS Glue Schema Registry, as Avro or Protobuf' },
] as const;

/** The first bytes of other forms. */
const FORMS: readonly (readonly [magic: readonly number[], name: string])[] = [
  [[0x1f, 0x8b], 'compressed with gzip'],
  [[0x28, 0xb5, 0x2f, 0xfd], 'compressed with zstd'],
  [[0x04, 0x22, 0x4d, 0x18], 'compressed with lz4'],
  [[0xff, 0x06, 0x00, 0x00, 0x73, 0x4e], 'compressed with snappy'],
  [[0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59], 'compressed with snappy'],
  [[0x78, 0x01], 'compressed with zlib'],
  [[0x78, 0x9c], 'compressed with zlib'],
  [[0x78, 0xda], 'compressed with zlib'],
  [[0x50, 0x4b, 0x03, 0x04], 'a ZIP archive'],
  [[0xff, 0xfe], 'text in UTF-16'],
  [[0xfe, 0xff], 'text in UTF-16'],
  [[0x7b, 0x00], 'text in UTF-16'],
  [[0x00, 0x7b, 0x00], 'text in UTF-16'],
  [[0x4f, 0x62, 0x6a, 0x01], 'an Avro file'],
  [[0x50, 0x41, 0x52, 0x31], 'a Parquet file'],
  [[0xf3, 0x89, 0x9a, 0xc2], 'aggregated by the Kinesis Producer Library'],
  [[0x03, 0x05], 'framed by the AWS Glue Schema Registry, and compressed'],
];

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

const OPEN_OBJECT = 0x7b;

/** The text of a body, or the reason why it has none. */
export type BodyText = { readonly text: string } | { readonly text: string; readonly problem: Error };

/**
 * Reads the text of a body, byte for byte: without a byte order mark or the frame of a schema registry, and without the quotes of JSON that was
 * encoded twice. For a body that is not text, the text is Base64, which identifies it.
 */
export function bodyText(body: string | Uint8Array): BodyText {
  if (typeof body === 'string') return { text: withoutQuotes(body.replace(/^\uFEFF/, '')) };
  if (body[0] === OPEN_OBJECT && body[1] !== 0 && isUtf8(body)) return { text: textIn(body) };
  if (startsWith(body, BYTE_ORDER_MARK)) return bodyText(body.subarray(BYTE_ORDER_MARK.length));
  const name = FORMS.find(([magic]) => startsWith(body, magic))?.[1];
  if (name !== undefined) return unreadable(body, name);
  const frames = FRAMES.filter(({ magic, length }) => body.length > length && startsWith(body, magic));
  const framed = frames.map(({ length }) => body.subarray(length)).find(isObjectText);
  if (framed !== undefined) return { text: textIn(framed) };
  if (frames[0] !== undefined) return unreadable(body, frames[0].name);
  if (!isUtf8(body))
    return unreadable(body, 'binary, such as Avro, Protobuf or MessagePack, or not in UTF-8');
  return { text: withoutQuotes(textIn(body)) };
}

function unreadable(body: Uint8Array, name: string): BodyText {
  const problem = poison('UNREADABLE_MESSAGE', `The message's body is ${name}, not JSON. ${DECODE}`);
  return { text: Buffer.from(body).toString('base64'), problem };
}

function textIn(body: Uint8Array): string {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8');
}

function startsWith(body: Uint8Array, magic: readonly number[]): boolean {
  return magic.every((byte, at) => body[at] === byte);
}

function isObjectText(body: Uint8Array): boolean {
  return body[0] === OPEN_OBJECT && isUtf8(body) && parsed(textIn(body)) !== undefined;
}

/** The object that was encoded twice, `"{\"a\":1}"`, as it was encoded first. */
function withoutQuotes(text: string): string {
  if (!text.startsWith('"')) return text;
  const inner = parsed(text);
  return typeof inner === 'string' && typeof parsed(inner) === 'object' ? inner : text;
}

function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
