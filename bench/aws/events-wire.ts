import { type BilledEntry, busEvents } from './billing.ts';
import { known, type Wire } from './wire.ts';

/** An entry of PutEvents. */
export interface WireEntry extends BilledEntry {
  readonly EventBusName?: string;
}

/** The bus: returns a result per entry, and stores the accepted ones. */
export function createEventsWire() {
  let published: WireEntry[] = [];
  let toFail = 0;
  let accepted = 0;

  function answerFor(entry: WireEntry): Wire {
    if (toFail > 0) {
      toFail -= 1;
      return { ErrorCode: 'ThrottlingException', ErrorMessage: 'Rate exceeded' };
    }
    published.push(entry);
    accepted += 1;
    return { EventId: `accepted-${accepted}` };
  }

  return {
    /** Only accepted entries, i.e. published events, are billed (EventBridge pricing). */
    putEvents: (operation: string, input: Wire): { readonly answer: Wire; readonly billed: number } => {
      if (operation !== 'PutEvents')
        throw new Error(`The metered AWS does not support ${operation} of EventBridge`);
      known('PutEvents', input, ['Entries']);
      const sent = input.Entries as readonly WireEntry[];
      const Entries = sent.map(answerFor);
      const billed = sent.reduce((sum, entry, i) => sum + (Entries[i]?.EventId ? busEvents(entry) : 0), 0);
      return {
        answer: { FailedEntryCount: Entries.filter((entry) => entry.ErrorCode).length, Entries },
        billed,
      };
    },
    takePublished: () => {
      const taken = published;
      published = [];
      return taken;
    },
    failNext: (count: number) => {
      toFail += count;
    },
  };
}
