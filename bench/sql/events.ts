import { z } from 'zod';
import type { Bus } from '../../lambdas/runtime/bus/event-bus.ts';
import { defineEvent } from '../../lambdas/runtime/events/event.ts';
import type { BenchDatabase } from './database.ts';

const Placed = defineEvent({
  source: 'orders',
  type: 'Placed',
  version: 1,
  aggregateType: 'order',
  schema: z.object({ note: z.string() }),
});

/** The payload of an event, about 1 KB as an envelope. */
export const PAYLOAD = { note: 'x'.repeat(700) };

/** The time that a call to the bus takes, milliseconds: as long as one of EventBridge. */
export const BUS_MS = 30;

/** Commits one event in its own transaction. @param n - its aggregate */
export function producerOf({ outbox }: Pick<BenchDatabase, 'outbox'>): (n: number) => Promise<unknown> {
  return (n) => outbox.commit(async () => [Placed.create({ aggregateId: String(n), data: PAYLOAD })]);
}

/** Writes many events at once. */
export async function fill(
  { outbox, analyze }: Pick<BenchDatabase, 'outbox' | 'analyze'>,
  events: number,
  aggregateId: (n: number) => string = String,
): Promise<void> {
  for (let from = 0; from < events; from += 1_000) {
    const count = Math.min(1_000, events - from);
    const drafts = Array.from({ length: count }, (_, n) =>
      Placed.create({ aggregateId: aggregateId(from + n), data: PAYLOAD }),
    );
    await outbox.commit(async () => drafts);
  }
  await analyze();
}

/** A bus that accepts everything after a time. @param onEvent - receives the time since each event's commit, milliseconds */
export function slowBus(ms: number, onEvent: (ageMs: number) => void = () => {}): Bus {
  return {
    put: async (entries) => {
      if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
      return entries.map(({ detail }) => {
        onEvent(Date.now() - (JSON.parse(detail) as { readonly occurredAt: number }).occurredAt);
        return { ok: true, id: '1' };
      });
    },
  };
}

/** A percentile of some times, milliseconds. */
export function percentile(times: readonly number[], share: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN);
}

/** Calls a function at a steady rate until a time, and waits for its calls. @param perSecond - at most 1,000 */
export async function steadily(
  perSecond: number,
  forMs: number,
  call: (n: number) => Promise<unknown>,
): Promise<number> {
  const beganAt = performance.now();
  const calls: Promise<unknown>[] = [];
  for (let elapsed = 0; elapsed < forMs; elapsed = performance.now() - beganAt) {
    const due = Math.floor((elapsed / 1_000) * perSecond);
    while (calls.length < due) calls.push(call(calls.length));
    await new Promise((resolve) => setTimeout(resolve, 1_000 / perSecond));
  }
  await Promise.all(calls);
  return calls.length;
}

/** Bytes as MB, with one decimal. */
export function megabytes(bytes: number): number {
  return Math.round(bytes / 100_000) / 10;
}
