import { expect, vi } from 'vitest';
import type { Bus, BusEntry } from '../../lambdas/runtime/bus/event-bus.ts';
import { type Case, type Differences, describeCases, type Subject } from './cases.ts';

/** A bus with one rule, which sends everything to a queue. */
export interface BusSubject {
  readonly bus: Bus;
  /** The bodies of the messages that have reached the queue so far. */
  bodies(): Promise<readonly string[]>;
}

const TIMEOUT_MS = 120_000;

const entry = (source: string, n: number, rest: Partial<BusEntry> = {}): BusEntry => ({
  source,
  detailType: 'OrderPlaced',
  detail: JSON.stringify({ n, text: 'żółw' }),
  ...rest,
});

const cases: readonly Case<BusSubject>[] = [
  [
    'every entry gets its own id, and reaches the queue',
    async (subject) => {
      const entries = [1, 2, 3].map((n) => entry('bus-1', n));
      const results = await subject.bus.put(entries, TIMEOUT_MS);
      expect(results).toEqual(entries.map(() => ({ ok: true, id: expect.any(String) })));
      const ids = results.map((result) => (result.ok ? result.id : ''));
      expect(new Set(ids).size).toBe(3);
      const messages = await received(subject, 'bus-1', 3);
      expect(messages.map((message) => message.detail)).toEqual(
        entries.map(({ detail }) => JSON.parse(detail)),
      );
      expect(messages[0]).toMatchObject({ version: '0', 'detail-type': 'OrderPlaced', resources: [] });
      expect(messages.map((message) => message.id)).toEqual(ids);
      expect(messages[0]?.time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    },
  ],
  [
    'an invalid entry fails alone',
    async (subject) => {
      const entries = [entry('bus-2', 1), entry('bus-2', 2, { detail: '{"n":' }), entry('bus-2', 3)];
      expect(await subject.bus.put(entries, TIMEOUT_MS)).toEqual([
        { ok: true, id: expect.any(String) },
        { ok: false, code: 'MalformedDetail', message: expect.any(String) },
        { ok: true, id: expect.any(String) },
      ]);
      const messages = await received(subject, 'bus-2', 2);
      expect(messages.map((message) => message.detail.n)).toEqual([1, 3]);
    },
  ],
  [
    'an entry without a source or a detail type fails alone',
    async (subject) => {
      const entries = [entry('', 1), entry('bus-3', 2, { detailType: '' }), entry('bus-3', 3)];
      expect(await subject.bus.put(entries, TIMEOUT_MS)).toEqual([
        { ok: false, code: 'InvalidArgument', message: expect.any(String) },
        { ok: false, code: 'InvalidArgument', message: expect.any(String) },
        { ok: true, id: expect.any(String) },
      ]);
    },
  ],
  [
    'ten entries go in one call, eleven do not',
    async ({ bus }) => {
      const entries = Array.from({ length: 11 }, (_, n) => entry('bus-4', n));
      await expect(bus.put(entries, TIMEOUT_MS)).rejects.toMatchObject({ name: 'ValidationException' });
      expect(await bus.put(entries.slice(0, 10), TIMEOUT_MS)).toHaveLength(10);
    },
  ],
  [
    'a call without entries is refused',
    async ({ bus }) => {
      await expect(bus.put([], TIMEOUT_MS)).rejects.toMatchObject({ name: 'ValidationException' });
    },
  ],
  [
    'a call above 1 MB is refused',
    async ({ bus }) => {
      const detail = JSON.stringify({ filler: 'x'.repeat(300_000) });
      const entries = [1, 2, 3, 4].map((n) => entry('bus-5', n, { detail }));
      await expect(bus.put(entries, TIMEOUT_MS)).rejects.toMatchObject({ name: 'ValidationException' });
    },
  ],
];

/** The suite that every implementation of the bus port must pass. */
export function describeBus(
  name: string,
  make: () => Promise<Subject<BusSubject>>,
  differences?: Differences,
): void {
  describeCases(name, cases, make, differences);
}

interface Message {
  readonly id: string;
  readonly source: string;
  readonly time: string;
  readonly detail: { readonly n: number };
}

async function received(subject: BusSubject, source: string, count: number): Promise<Message[]> {
  return vi.waitFor(
    async () => {
      const messages = (await subject.bodies()).map((body) => JSON.parse(body) as Message);
      const ours = messages.filter((message) => message.source === source);
      expect(ours).toHaveLength(count);
      return ours.sort((a, b) => a.detail.n - b.detail.n);
    },
    { timeout: TIMEOUT_MS, interval: 100 },
  );
}
