import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { S3 } from '@aws-sdk/client-s3';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { PayloadReference, Payloads } from '../../../../lambdas/runtime/events/payloads.ts';
import { lambdaPayloads, s3Payloads } from '../../../../lambdas/runtime/store/s3-payloads.ts';

const config = { bucket: 'reports', aboveBytes: 1024, aheadDays: 1, inline: [] };
const json = JSON.stringify({ text: 'x'.repeat(2_000) });
const created = { eventId: '019b76da-a800-7000-8000-000000000000', type: 'ReportMade', json, delayMs: 0 };

let server: Server | undefined;
afterEach(() => {
  server?.close();
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

/** The payloads of a client whose S3 answers as given. */
async function answeredBy(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const requests: IncomingMessage[] = [];
  server = createServer((request, response) => {
    requests.push(request);
    request.resume().on('end', () => answer(request, response));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = new S3({
    endpoint: `http://127.0.0.1:${port}`,
    region: 'eu-central-1',
    credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    forcePathStyle: true,
    maxAttempts: 1,
  });
  return { requests, payloads: s3Payloads({ client, config }) };
}

const refusal = (status: number, code: string) => (_: unknown, response: ServerResponse) =>
  response
    .writeHead(status, { 'content-type': 'application/xml' })
    .end(`<Error><Code>${code}</Code><Message>refused</Message></Error>`);

async function reference(): Promise<PayloadReference> {
  const { payloads } = await answeredBy((_, response) => response.end());
  const written = await payloads.write(created);
  server?.close();
  return written as PayloadReference;
}

describe('S3', () => {
  test('gets the object under the key of its event with its SHA-256, and refuses to replace one', async () => {
    const { payloads, requests } = await answeredBy((_, response) => response.end());
    const written = await payloads.write(created);
    expect(requests.map(({ method, url }) => `${method} ${url?.split('?')[0]}`)).toEqual([
      `PUT /reports/events/${created.eventId}`,
    ]);
    expect(requests[0]?.headers).toMatchObject({
      'if-none-match': '*',
      'content-type': 'application/json',
      'x-amz-checksum-sha256': Buffer.from(written?.sha256 ?? '', 'hex').toString('base64'),
    });
  });

  test('has the object already if an earlier try of the call has written it', async () => {
    const { payloads } = await answeredBy(refusal(412, 'PreconditionFailed'));
    expect(await payloads.write(created)).toMatchObject({ bytes: json.length });
  });

  test('is asked once more if an earlier try of the call is still under way', async () => {
    let calls = 0;
    const { payloads } = await answeredBy((request, response) => {
      calls += 1;
      if (calls === 1) refusal(409, 'ConditionalRequestConflict')(request, response);
      else response.end();
    });
    expect(await payloads.write(created)).toMatchObject({ bytes: json.length });
    expect(calls).toBe(2);
    const refusing = await answeredBy(refusal(409, 'ConditionalRequestConflict'));
    await expect(refusing.payloads.write(created)).rejects.toMatchObject({ code: 'PAYLOADS_UNAVAILABLE' });
    expect(refusing.requests).toHaveLength(2);
  });

  test('returns the payload', async () => {
    const payload = await reference();
    const { payloads } = await answeredBy((_, response) => response.end(json));
    expect(await payloads.read({ type: 'ReportMade', payload })).toEqual(JSON.parse(json));
  });

  test.each([
    [404, 'NoSuchKey', 'PAYLOAD_MISSING'],
    [404, 'NoSuchBucket', 'PAYLOADS_UNAVAILABLE'],
    [403, 'AccessDenied', 'PAYLOADS_UNAVAILABLE'],
    [400, 'KMS.DisabledException', 'PAYLOADS_UNAVAILABLE'],
    [503, 'SlowDown', 'PAYLOADS_UNAVAILABLE'],
  ])('that answers %i %s to a read is %s', async (status, answer, code) => {
    const payload = await reference();
    const { payloads } = await answeredBy(refusal(status, answer));
    await expect(payloads.read({ type: 'ReportMade', payload })).rejects.toMatchObject({ code });
  });

  test('that ends a body early is unavailable, and not a changed payload', async () => {
    const payload = await reference();
    const { payloads } = await answeredBy((_, response) => {
      response.writeHead(200, { 'content-length': String(json.length) });
      response.write(json.slice(0, 100), () => response.destroy());
    });
    const read = payloads.read({ type: 'ReportMade', payload });
    await expect(read).rejects.toMatchObject({ code: 'PAYLOADS_UNAVAILABLE' });
  });

  test('that has another size is not read, and its connection ends', async () => {
    const payload = await reference();
    let closed: Promise<unknown> | undefined;
    vi.spyOn(AbortSignal, 'timeout').mockReturnValue(new AbortController().signal);
    const { payloads } = await answeredBy((_, response) => {
      closed = once(response, 'close');
      response.writeHead(200, { 'content-length': String(json.length - 1) });
      response.write(json.slice(0, 100)); // the rest never comes
    });
    const read = payloads.read({ type: 'ReportMade', payload });
    await expect(read).rejects.toMatchObject({ code: 'PAYLOAD_CHANGED' });
    await closed;
  });

  const read = (payloads: Payloads, payload: PayloadReference) => payloads.read({ type: 'R', payload });
  const write = (payloads: Payloads) => payloads.write(created);

  test.each([
    ['a read', 'nothing', read],
    ['a read', 'a part of the body', read],
    ['a write', 'nothing', write],
  ] as const)('has 10 s for %s, and is then unavailable: it has sent %s', async (_what, sends, call) => {
    const payload = await reference();
    const deadline = new AbortController();
    const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(deadline.signal);
    const { payloads } = await answeredBy((_, response) => {
      if (sends === 'nothing') return deadline.abort(new Error('10 s are over'));
      response.writeHead(200, { 'content-length': String(json.length) });
      response.write(json.slice(0, 100), () => deadline.abort(new Error('10 s are over')));
    });
    await expect(call(payloads, payload)).rejects.toMatchObject({ code: 'PAYLOADS_UNAVAILABLE' });
    expect(timeout.mock.calls).toEqual([[10_000]]);
  });
});

describe('lambdaPayloads', () => {
  const client = new S3({ region: 'eu-central-1' });

  test('does nothing in a function whose Mailroom has no payloads', () => {
    expect(lambdaPayloads(client)()).toBeUndefined();
  });

  test('names a variable that is wrong', () => {
    vi.stubEnv('MAILROOM_PAYLOADS_BUCKET', 'reports');
    vi.stubEnv('MAILROOM_PAYLOADS_ABOVE', '1000000');
    vi.stubEnv('MAILROOM_PAYLOADS_AHEAD_DAYS', '29');
    vi.stubEnv('MAILROOM_PAYLOADS_INLINE', '[]');
    expect(() => lambdaPayloads(client)()).toThrow('MAILROOM_PAYLOADS_ABOVE');
    vi.stubEnv('MAILROOM_PAYLOADS_ABOVE', '204800');
    expect(lambdaPayloads(client)()).toHaveProperty('write');
  });
});
