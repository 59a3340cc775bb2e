import { expect, test } from 'vitest';
import { envelopeOf } from '../../../cli/reports/events/stored-envelope.ts';
import type { Trace } from '../../../cli/reports/why/trace.ts';
import { eventReports, payloadsOf } from '../../../cli/reports/why/trace-text.ts';

const eventId = '019b76da-a800-7000-8000-000000000000';
const payload = { bucket: 'reports', key: `events/${eventId}`, bytes: 300_000, sha256: 'a'.repeat(64) };
const traceOf = (envelope: object) =>
  ({
    events: [{ eventId, messages: [], envelope: envelopeOf(JSON.stringify({ eventId, ...envelope })) }],
  }) as unknown as Trace;
const linesOf = (envelope: object) => payloadsOf(traceOf(envelope))[0]?.lines;

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

test('names the object beside null in the JSON document, and null beside data', () => {
  const reportOf = (envelope: object) => eventReports(traceOf(envelope), true)[0];
  expect(reportOf({ payload })).toMatchObject({ data: null, payload });
  expect(reportOf({ data: { n: 1 } })).toMatchObject({ data: { n: 1 }, payload: null });
});
