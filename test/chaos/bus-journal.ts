import type { Answer, Call } from './fault-proxy.ts';
import type { BusEntryInput } from './faults.ts';

/** What the bus took, seen on the wire: how often each event was published, also where the publisher never heard so. */
export interface BusJournal {
  /** Looks at a call that the engine answered. */
  note(call: Call, answer: Answer): void;
  /** How often the bus took an event. */
  timesPublished(eventId: string): number;
}

/** Makes an empty journal. */
export function createBusJournal(): BusJournal {
  const times = new Map<string, number>();
  return {
    note: (call, answer) => {
      if (call.action !== 'PutEvents' || answer.status !== 200) return;
      const entries = (call.body.Entries ?? []) as readonly BusEntryInput[];
      const results = (JSON.parse(answer.body).Entries ?? []) as readonly { EventId?: string }[];
      entries.forEach(({ Detail = '{}' }, i) => {
        const { eventId } = JSON.parse(Detail) as { eventId?: string };
        if (eventId === undefined || results[i]?.EventId === undefined) return;
        times.set(eventId, (times.get(eventId) ?? 0) + 1);
      });
    },
    timesPublished: (eventId) => times.get(eventId) ?? 0,
  };
}
