import { describe, expect, test } from 'vitest';
import { type BridgedEvent, type BridgeTarget, bridge } from '../../../../lambdas/runtime/bridge.ts';
import type { Handler } from '../../../../lambdas/runtime/consume/handler.ts';
import type { MemoryPayloadsOptions } from '../../../../testing/index.ts';
import { LARGE, ReportMade, reports } from '../consume/payload-rig.ts';

/** A bridge of reports to a target that takes messages of this size. */
function bridged(options: MemoryPayloadsOptions = {}, bytes = 10_000) {
  const sent: BridgedEvent[] = [];
  const target: BridgeTarget = {
    name: () => 'topic reports',
    limits: { entries: 10, bytes },
    send: async (entries) => {
      sent.push(...entries);
      return entries.map(() => ({ ok: true, place: { partition: 0, offset: '1' } }));
    },
  };
  const parts = reports(options, 2);
  const [handler] = bridge({ to: target, events: [ReportMade] });
  return { ...parts, ...parts.consumerOf(handler as Handler), sent };
}

describe('a bridge', () => {
  test('sends a large payload in the place of its reference, and leaves the rest of the envelope as it is', async () => {
    const { commit, drain, bus, sent, row } = bridged();
    const [event] = await commit(LARGE);
    await drain();
    const { payload, ...rest } = JSON.parse(bus.published()[0]?.detail ?? '{}');
    expect(payload).toMatchObject({ bucket: 'payloads' });
    expect(sent.map(({ body }) => JSON.parse(body))).toEqual([{ ...rest, data: { text: LARGE } }]);
    expect(sent[0]?.event.data).toEqual({ text: LARGE });
    expect(row(event?.eventId ?? '')).toMatchObject({ status: 'PROCESSED' });
  });

  test('sends an event that is inline byte for byte, and reads no object', async () => {
    const failCall = () => new Error('S3 was called');
    const { commit, drain, bus, sent } = bridged({ inline: ['ReportMade'], failCall });
    await commit(LARGE);
    await drain();
    expect(sent.map(({ body }) => body)).toEqual([bus.published()[0]?.detail]);
  });

  test.each([
    ['PAYLOAD_MISSING', 10_000, (objects: Map<string, Uint8Array>) => objects.clear()],
    ['BRIDGE_REJECTED', 1_000, () => {}],
  ])('rejects as %s what it cannot send whole', async (code, bytes, change) => {
    const { commit, drain, payloads, sent, row } = bridged({}, bytes);
    const [event] = await commit(LARGE);
    change(payloads.objects);
    await drain();
    expect(sent).toEqual([]);
    expect(JSON.stringify(row(event?.eventId ?? ''))).toContain(code);
  });
});
