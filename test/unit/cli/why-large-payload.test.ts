import { expect, test } from 'vitest';
import { envelopeOf } from '../../../cli/reports/events/stored-envelope.ts';
import type { Trace } from '../../../cli/reports/why/trace.ts';
import { payloadsOf } from '../../../cli/reports/why/trace-text.ts';

const eventId = '019b76da-a800-7000-8000-000000000000';
const payload = { bucket: 'reports', key: `events/${eventId}`, bytes: 300_000, sha256: 'a'.repeat(64) };
const linesOf = (envelope: object) =>
  payloadsOf({
    events: [{ eventId, messages: [], envelope: envelopeOf(JSON.stringify({ eventId, ...envelope })) }],
  } as unknown as Trace)[0]?.lines;

test('shows the object of a large payload, which erases it', () => {
  expect(linesOf({ payload })).toEqual([
    `s3://reports/events/${eventId}, 300000 bytes, SHA-256 ${payload.sha256}`,
    'The payload is this object in S3. Once the object is deleted or has expired, no copy is left.',
  ]);
});

test('shows the data of any other event, and nothing of a reference that is not one', () => {
  expect(linesOf({ data: { n: 1 }, payload })).toEqual(['{', '  "n": 1', '}']);
  expect(linesOf({ payload: { ...payload, key: 'events/another' } })).toEqual(['null']);
});
