import { randomBytes } from 'node:crypto';
import { deflateRawSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { PUT_EVENTS_BYTES_MAX } from '../../../../lambdas/runtime/bus/event-bus.ts';
import { itemBytes } from '../../../../lambdas/runtime/store/item-size.ts';
import { envelopeJson, storedEnvelope } from '../../../../lambdas/runtime/store/stored-envelope.ts';

/** The other attributes of a row: 100 bytes. */
const row = { PK: 'x'.repeat(98) };

/** JSON of a number of bytes that compresses well, or not at all. */
const plain = (bytes: number) => JSON.stringify('a'.repeat(bytes - 2));
const noise = (bytes: number) =>
  JSON.stringify(
    randomBytes(bytes)
      .toString('base64')
      .slice(0, bytes - 2),
  );

const bytesOf = (json: string) => itemBytes({ ...row, ...storedEnvelope(json, row) });

describe('an envelope', () => {
  test('is text while its row fits one write unit, also after its mark', () => {
    expect(storedEnvelope(plain(800), row)).toEqual({ envelope: plain(800) });
  });

  test('is compressed when that saves a write unit', () => {
    expect(storedEnvelope(plain(2_000), row)).toMatchObject({ encoding: 'deflate-raw' });
    expect(bytesOf(plain(2_000))).toBeLessThan(1_024);
  });

  test('is compressed when only its mark would need another write unit', () => {
    // With the 100 bytes and the name of the attribute it has 1,008: one unit to put, two to mark.
    expect(storedEnvelope(plain(900), row)).toMatchObject({ encoding: 'deflate-raw' });
  });

  test('is text when compressing saves nothing', () => {
    expect(storedEnvelope(noise(1_500), row)).not.toHaveProperty('encoding');
  });

  test('keeps a byte order mark', () => {
    const json = `\ufeff${plain(2_000)}`;
    const stored = storedEnvelope(json, row);
    expect(stored).toHaveProperty('encoding');
    expect(envelopeJson({ ...stored })).toEqual({ json });
  });

  test.each([0, 800, 900, 2_000, 50_000])(
    'an envelope of %i more bytes is read as it was written',
    (bytes) => {
      const json = JSON.stringify({ text: 'ä€😀'.repeat(bytes / 9), noise: noise(bytes + 10) });
      const stored = storedEnvelope(json, row);
      expect(envelopeJson({ ...stored })).toEqual({ json });
      const inImage = JSON.parse(JSON.stringify({ ...stored, envelope: base64(stored.envelope) }));
      expect(envelopeJson(inImage)).toEqual({ json });
    },
  );
});

describe('a row whose envelope cannot be read', () => {
  const bomb = deflateRawSync(Buffer.alloc(PUT_EVENTS_BYTES_MAX + 1, 0x20));
  const whole = deflateRawSync(Buffer.alloc(PUT_EVENTS_BYTES_MAX, 0x20));

  test('inflates to no more than EventBridge takes', () => {
    const problemOf = (envelope: Uint8Array) => envelopeJson({ envelope, encoding: 'deflate-raw' }).problem;
    expect(problemOf(whole)).toBeUndefined();
    expect(problemOf(bomb)).toBe('its "envelope" cannot be inflated (ERR_BUFFER_TOO_LARGE)');
  });

  test.each([
    [
      'another encoding',
      { envelope: whole, encoding: 'zstd' },
      'its "encoding" is "zstd", and this version reads deflate-raw',
    ],
    [
      'a number as its encoding',
      { envelope: whole, encoding: 1 },
      'its "encoding" is not a string, and this version reads deflate-raw',
    ],
    ['binary without an encoding', { envelope: whole }, 'its "envelope" is not a string'],
    ['an encoding alone', { encoding: 'deflate-raw' }, 'its "envelope" is not deflate-raw'],
    ['nothing', {}, 'it has no "envelope"'],
    [
      'bytes that are not UTF-8',
      { envelope: deflateRawSync(Buffer.from([0x22, 0xff, 0x22])), encoding: 'deflate-raw' },
      expect.stringContaining('cannot be inflated'),
    ],
    [
      'bytes that are not DEFLATE',
      { envelope: Buffer.from('?????'), encoding: 'deflate-raw' },
      expect.stringContaining('cannot be inflated'),
    ],
  ])('has a problem that names %s', (_what, item, problem) => {
    expect(envelopeJson(item as never)).toEqual({ problem });
  });
});

function base64(value: string | Uint8Array): string {
  return typeof value === 'string' ? value : Buffer.from(value).toString('base64');
}
