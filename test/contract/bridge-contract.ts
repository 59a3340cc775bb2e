import { expect } from 'vitest';
import {
  type BridgedEvent,
  type BridgeTarget,
  bridgedId,
} from '../../lambdas/runtime/bridge/bridge-target.ts';
import { mintEventId } from '../../lambdas/runtime/store/event-id.ts';
import { eventually } from '../local/support/eventually.ts';
import { type Case, type Differences, describeCases, type Subject } from './cases.ts';

/** A message as it arrived at the target. */
export interface Arrived {
  readonly body: string;
  /** What keeps the messages of an aggregate together: group, partition key. Absent: the target has none. */
  readonly key?: string | undefined;
  /** The id by which the target, or its subscribers, recognize the event. Absent: it is only in the body. */
  readonly id?: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

/** A failure that a target's other side can be put into. */
export type BridgeFault = 'missing' | 'denied' | 'away' | 'silent';

/** A target and its other side. */
export interface BridgeSubject {
  readonly target: BridgeTarget;
  /** Everything that has arrived, oldest first. */
  arrived(): Promise<readonly Arrived[]>;
  /** Breaks the other side, or repairs it. */
  fault(fault: BridgeFault | undefined): Promise<void>;
}

/** Text that parsing would change, outside of ASCII and with what headers cannot hold. */
const DATA = '{"cents": 12345678901234567890, "name": "Zoë \\u2028 \\"x\\"" , "n":1.0}';

/** An entry with its own envelope. */
export function bridgedEvent(change: Partial<BridgedEvent['event']> = {}, data = DATA): BridgedEvent {
  const event = {
    eventId: mintEventId(Date.now(), 1),
    type: 'OrderPlaced',
    version: 1,
    aggregateType: 'Order',
    aggregateId: 'order-1',
    occurredAt: 1_767_225_600_000,
    correlationId: 'chain',
    source: 'orders',
    data: {},
    ...change,
  };
  const { source, data: _, ...envelope } = event;
  const body = `${JSON.stringify(envelope).slice(0, -1)},"data":${data}}`;
  const headers = { eventId: event.eventId, source, subject: event.aggregateId };
  return { event, body, headers, bridge: 'to-partner' };
}

async function sent(target: BridgeTarget, ...entries: readonly BridgedEvent[]) {
  return target.send(entries);
}

async function arrivedAs(subject: BridgeSubject, entries: readonly BridgedEvent[]): Promise<Arrived[]> {
  return eventually(async () => {
    const all = await subject.arrived();
    const found = entries.map(({ body }) => all.find((one) => one.body === body));
    expect(found).not.toContain(undefined);
    return found as Arrived[];
  });
}

/** A fault is answered by a refusal that can pass; once it is repaired, the same target delivers. */
function passing(fault: BridgeFault, refusal: string): Case<BridgeSubject>[1] {
  return async (subject) => {
    const entries = [bridgedEvent(), bridgedEvent()];
    await subject.fault(fault);
    const refused = await subject.target.send(entries).finally(() => subject.fault(undefined));
    expect(refused).toMatchObject([
      { ok: false, refusal, message: expect.any(String) },
      { ok: false, refusal },
    ]);
    expect(await sent(subject.target, ...entries)).toMatchObject([{ ok: true }, { ok: true }]);
    await arrivedAs(subject, entries);
  };
}

const cases: readonly Case<BridgeSubject>[] = [
  [
    'the envelope arrives byte for byte, with its headers, under its aggregate and its event id',
    async (subject) => {
      const entry = bridgedEvent({ aggregateId: 'order-7' });
      const [result] = await sent(subject.target, entry);
      expect(result).toEqual({ ok: true, place: expect.any(Object) });
      expect(Object.values(result?.ok ? result.place : {})).not.toEqual([]);
      const [message] = await arrivedAs(subject, [entry]);
      if (message?.key !== undefined) expect(message.key).toBe('order-7');
      const ids = [entry.event.eventId, bridgedId(entry), undefined];
      expect(ids).toContain(message?.id);
      const { cloudEventsPrefix } = subject.target;
      if (cloudEventsPrefix !== undefined) expect(message?.headers).toMatchObject(entry.headers);
    },
  ],
  [
    'each entry of a batch has its own result, in their order',
    async (subject) => {
      const entries = [1, 2, 3, 4].map((n) => bridgedEvent({ aggregateId: `order-${n}` }));
      const results = await sent(subject.target, ...entries);
      expect(results).toHaveLength(4);
      const places = results.map((result) => JSON.stringify(result.ok && result.place));
      expect(results.every(({ ok }) => ok)).toBe(true);
      if (subject.target.name() !== 'exchange contract') expect(new Set(places).size).toBe(4);
      await arrivedAs(subject, entries);
    },
  ],
  [
    'an event of two bridges arrives from each, also at a target that drops the duplicates of one',
    async (subject) => {
      const [one, other] = [bridgedEvent(), bridgedEvent()];
      const entries = ['a', 'b', 'a'].map((bridge) => ({ ...one, bridge }));
      for (const entry of entries) expect(await sent(subject.target, entry)).toMatchObject([{ ok: true }]);
      await sent(subject.target, other);
      const [message] = await arrivedAs(subject, [one, other]);
      const copies = (await subject.arrived()).filter(({ body }) => body === one.body);
      const isDeduplicated = message?.id === bridgedId({ ...one, bridge: 'a' });
      expect(copies).toHaveLength(isDeduplicated ? 2 : 3);
    },
  ],
  [
    'an aggregate id of any form is sent',
    async (subject) => {
      const entries = ['ä ö', 'x'.repeat(300)].map((aggregateId) => bridgedEvent({ aggregateId }));
      expect(await sent(subject.target, ...entries)).toMatchObject([{ ok: true }, { ok: true }]);
      await arrivedAs(subject, entries);
    },
  ],
  ['a target that does not exist is retried, also once it exists', passing('missing', 'missing')],
  ['denied access is retried', passing('denied', 'denied')],
  ['a target that cannot be reached is retried', passing('away', 'unavailable')],
  [
    'after a call without an answer, a reset opens another connection',
    async (subject) => {
      const entry = bridgedEvent();
      await subject.fault('silent');
      const silent = subject.target.send([entry]).catch(() => {});
      subject.target.reset?.();
      await subject.fault(undefined);
      expect(await sent(subject.target, entry)).toMatchObject([{ ok: true }]);
      void silent;
      await arrivedAs(subject, [entry]);
    },
  ],
  [
    'an event above the limit is refused permanently, and the next one arrives',
    async (subject) => {
      const { target } = subject;
      const { entryBytes = target.limits.bytes } = target.limits;
      const large = bridgedEvent({}, `"${'x'.repeat(Math.min(entryBytes, 1024 * 1024) + 1)}"`);
      expect(await sent(target, large)).toMatchObject([
        { ok: false, refusal: expect.stringMatching(/^(too-large|invalid)$/) },
      ]);
      const next = bridgedEvent();
      expect(await sent(target, next)).toMatchObject([{ ok: true }]);
      await arrivedAs(subject, [next]);
    },
  ],
];

/** The suite that every target of `bridge` must pass. */
export function describeBridge(
  name: string,
  make: () => Promise<Subject<BridgeSubject>>,
  differences?: Differences,
): void {
  describeCases(name, cases, make, differences);
}
