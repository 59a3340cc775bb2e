import { describe, expect, test } from 'vitest';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { lambdaContext, memoryPayloads } from '../../../../testing/index.ts';
import { LARGE, ReportMade, reports } from './payload-rig.ts';

describe('a consumer', () => {
  test('without payloads rejects the message, and says what to do', async () => {
    const { commit, consumerOf, row } = reports({}, 2);
    const [event] = await commit(LARGE);
    const never = consumerOf(
      leased(ReportMade, async () => {}),
      null,
    );
    await never.drain();
    const stored = JSON.stringify(row(event?.eventId ?? ''));
    expect(stored).toContain('PAYLOAD_NOT_LOADED');
    expect(stored).toContain('lambdaPayloads(new S3(clientSettings))');
  });

  test('rejects a payload in the bucket of another Mailroom without reading it', async () => {
    const { commit, consumerOf, row } = reports({}, 2);
    const other = memoryPayloads({
      bucket: 'other',
      failCall: () => {
        throw new Error('was read');
      },
    });
    const [event] = await commit(LARGE);
    await consumerOf(
      leased(ReportMade, async () => {}),
      other,
    ).drain();
    expect(JSON.stringify(row(event?.eventId ?? ''))).toContain('PAYLOAD_NOT_LOADED');
  });

  test.each([
    ['of another event', { key: 'events/another' }],
    ['without a hash', { sha256: 'abc' }],
    ['of no bucket', { bucket: '' }],
    ['of no size', { bytes: -1 }],
  ])('cannot read a reference %s', async (_what, change) => {
    const { commit, consumerOf, queue } = reports({}, 2);
    await commit(LARGE);
    const message = JSON.parse(queue.messages()[0]?.body ?? '');
    message.detail.payload = { ...message.detail.payload, ...change };
    const { handle } = consumerOf(leased(ReportMade, async () => {}));
    const check = { mailroomCheck: { bodies: [JSON.stringify(message)] } };
    const report = await handle(check as never, lambdaContext());
    expect(report).toMatchObject({ checks: [{ ok: false, code: 'UNREADABLE_MESSAGE' }] });
  });

  test('answers a check of a dead letter by its object', async () => {
    const { commit, consumerOf, queue, payloads } = reports();
    await commit(LARGE);
    const bodies = queue.messages().map((message) => message.body);
    const { handle } = consumerOf(leased(ReportMade, async () => {}));
    const check = () => handle({ mailroomCheck: { bodies } } as never, lambdaContext());
    expect(await check()).toMatchObject({ checks: [{ ok: true }] });
    payloads.objects.clear();
    expect(await check()).toMatchObject({ checks: [{ ok: false, code: 'PAYLOAD_MISSING' }] });
  });
});
