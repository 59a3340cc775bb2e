import { createHash } from 'node:crypto';
import { S3 } from '@aws-sdk/client-s3';
import { expect, test } from 'vitest';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { eventually } from '../support/eventually.ts';
import { invoke, output, read } from '../support/features.ts';
import { mailroom } from '../support/mailroom.ts';

const s3 = new S3({ forcePathStyle: true });
const objectOf = (eventId: string) => ({ Bucket: output('PayloadBucket'), Key: `events/${eventId}` });
const rowOf = (eventId: string) => read(inboxKey('reports', eventId));

/** Commits a report. */
const reported = async (text: string) => (await invoke(output('ReportFunction'), { text })) as string;

const ended = (eventId: string, status: string) =>
  eventually(async () => {
    const row = await rowOf(eventId);
    expect(row).toMatchObject({ status });
    return row;
  });

const received = (eventId: string) => read({ PK: `REPORT#${eventId}`, SK: 'REPORT' });

test('a payload of 2 MB reaches a function through S3, and a small one does not', async () => {
  const text = 'ä'.repeat(1_000_000);
  const [large, small] = [await reported(text), await reported('small')];
  for (const eventId of [large, small]) await ended(eventId, 'PROCESSED');
  expect(await received(large)).toMatchObject({
    length: text.length,
    sha256: createHash('sha256').update(text).digest('hex'),
  });
  const { ContentLength } = await s3.headObject(objectOf(large));
  expect(ContentLength).toBe(Buffer.byteLength(JSON.stringify({ text })));
  await expect(s3.headObject(objectOf(small))).rejects.toMatchObject({ name: 'NotFound' });
});

test('a changed object rejects its message, and a redrive processes it once the object is repaired', async () => {
  const reason = ['--reason', 'a test of payloads', '--apply'];
  expect((await mailroom('pause', 'reports', ...reason)).code).toBe(0);
  const text = 'x'.repeat(100_000);
  const eventId = await reported(text);
  const { Body, ...stored } = await s3.getObject(objectOf(eventId));
  const bytes = (await Body?.transformToString()) ?? '';
  await s3.putObject({ ...objectOf(eventId), Body: bytes.replace('x', 'y') });
  expect((await mailroom('resume', 'reports', ...reason)).code).toBe(0);
  expect(await ended(eventId, 'REJECTED')).toMatchObject({ reason: 'PAYLOAD_CHANGED' });
  expect(await received(eventId)).toBeUndefined();

  await s3.putObject({ ...objectOf(eventId), Body: bytes, ContentType: stored.ContentType });
  await eventually(async () => {
    const redrive = await mailroom('dlq', 'redrive', 'consumer:reports', eventId, '--wait', '15m', ...reason);
    expect(redrive.code, redrive.out + redrive.err).toBe(0);
  });
  await ended(eventId, 'PROCESSED');
  expect(await received(eventId)).toMatchObject({ length: text.length });
});
