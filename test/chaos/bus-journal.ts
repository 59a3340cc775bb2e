import type { Answer, Call } from './fault-proxy.ts';
import type { BusEntryInput } from './faults.ts';

/** What the bus took, seen on the wire: how often each event was published, also where the publisher never heard so. */
export interface BusJournal {
  /** Looks at a call that the engine answered. */
  note(call: Call, answer: Answer): void;
  /** How often the bus took an event. @param by - from this caller only. @default from anybody */
  timesPublished(eventId: string, by?: string): number;
}

/** Makes an empty journal. */
export function createBusJournal(): BusJournal {
  const publishers = new Map<string, string[]>();
  return {
    note: (call, answer) => {
      if (call.action !== 'PutEvents' || answer.status !== 200) return;
      const entries = (call.body.Entries ?? []) as readonly BusEntryInput[];
      const results = (JSON.parse(answer.body).Entries ?? []) as readonly { EventId?: string }[];
      entries.forEach(({ Detail = '{}' }, i) => {
        const { eventId } = JSON.parse(Detail) as { eventId?: string };
        if (eventId === undefined || results[i]?.EventId === undefined) return;
        publishers.set(eventId, [...(publishers.get(eventId) ?? []), call.from]);
      });
    },
    timesPublished: (eventId, by) =>
      (publishers.get(eventId) ?? []).filter((from) => by === undefined || from === by).length,
  };
}
