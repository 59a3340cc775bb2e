import { describe, expect, test } from 'vitest';
import { bodyText } from '../../../../lambdas/runtime/sources/body-text.ts';

const JSON_TEXT = '{"id":"ü","big":12345678901234567890}';
const json = Buffer.from(JSON_TEXT);
const bytes = (...values: readonly number[]) => Buffer.from(values);
const framed = (magic: readonly number[], length: number) =>
  Buffer.concat([bytes(...magic), Buffer.alloc(length - magic.length, 1), json]);

describe('the text of a body is, byte for byte,', () => {
  test.each<[string, string | Uint8Array]>([
    ['that of text', JSON_TEXT],
    ['that of bytes', json],
    ['that of bytes in a larger buffer', Buffer.concat([bytes(1, 2), json, bytes(3)]).subarray(2, -1)],
    ['that without a byte order mark', Buffer.concat([bytes(0xef, 0xbb, 0xbf), json])],
    ['that without a byte order mark, in text', `\uFEFF${JSON_TEXT}`],
    ['that in a frame of Confluent', framed([0], 5)],
    ['that in a frame of Apicurio', framed([0], 9)],
    ['that in a frame of the AWS Glue Schema Registry', framed([3, 0], 18)],
    ['that which was encoded twice', Buffer.from(JSON.stringify(JSON_TEXT))],
    ['that which was encoded twice, in text', JSON.stringify(JSON_TEXT)],
  ])('%s', (_name, body) => {
    expect(bodyText(body)).toEqual({ text: JSON_TEXT });
  });

  test.each(['', '"x"', '"1"', '"{"', '[]', 'x', '" {}'])('%j, which is not an object, as it is', (body) => {
    expect(bodyText(body)).toEqual({ text: body });
    expect(bodyText(Buffer.from(body))).toEqual({ text: body });
  });
});

describe('a body that is not text is named, and identified by its bytes:', () => {
  test.each<[string, readonly number[]]>([
    ['gzip', [0x1f, 0x8b, 8, 0]],
    ['zstd', [0x28, 0xb5, 0x2f, 0xfd, 1]],
    ['lz4', [0x04, 0x22, 0x4d, 0x18, 1]],
    ['snappy', [0xff, 0x06, 0x00, 0x00, 0x73, 0x4e, 0x61]],
    ['snappy', [0x82, ...Buffer.from('SNAPPY'), 0]],
    ['zlib', [0x78, 0x9c, 1]],
    ['ZIP', [0x50, 0x4b, 3, 4]],
    ['UTF-16', [...Buffer.from(JSON_TEXT, 'utf16le')]],
    ['UTF-16', [0xff, 0xfe, ...Buffer.from(JSON_TEXT, 'utf16le')]],
    ['UTF-16', [...Buffer.from('{"id":1}', 'utf16le').swap16()]],
    ['an Avro file', [...Buffer.from('Obj\u0001avro')]],
    ['a Parquet file', [...Buffer.from('PAR1')]],
    ['the Kinesis Producer Library', [0xf3, 0x89, 0x9a, 0xc2, 0x0a]],
    ['Confluent', [0, 0, 0, 0, 7, 4, 2]],
    ['Confluent', [0, 0, 0, 0, 7, 0x7b, 0x22]],
    ['Confluent', [0, 0, 0, 0, 7, 0x7b, 0xff, 0x7d]],
    ['Glue', [3, 0, ...Array(17).fill(9)]],
    ['Glue Schema Registry, and compressed', [3, 5, 1]],
    ['binary', [0x81, 0xa2, 0x69, 0x64]],
    ['binary', [0x7b, 0xff, 0x7d]],
  ])('%s', (name, values) => {
    const body = bytes(...values);
    const read = bodyText(body);
    expect(read).toMatchObject({
      text: body.toString('base64'),
      problem: {
        code: 'UNREADABLE_MESSAGE',
        message: expect.stringMatching(new RegExp(`${name}.*decode of createInboxProcessor`)),
      },
    });
  });
});
