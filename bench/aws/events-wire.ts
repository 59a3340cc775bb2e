import { type BilledEntry, busEvents } from './billing.ts';
import { known, type Wire } from './wire.ts';

/** An entry of PutEvents. */
export interface WireEntry extends BilledEntry {
  readonly EventBusName?: string;
}

/** The bus: it answers for each entry, and keeps what it accepted. */
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
    /** Only what is accepted is billed: an event published (EventBridge pricing). */
    putEvents: (operation: string, input: Wire): { readonly answer: Wire; readonly billed: number } => {
      if (operation !== 'PutEvents')
        throw new Error(`${operation} of EventBridge is not known to the metered AWS`);
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
