import type { LiveMessage } from '../protocol.ts';

/** The tabs that are open, and the messages that a new one needs. */
export interface Subscribers {
  count(): number;
  /** Adds a subscriber and sends it the flow, every run and the state of the demo. @returns a function that removes it */
  add(send: Subscriber): () => void;
  /** Sends the flow to all. */
  send(): void;
  /** Sends a message to all, and keeps it for new subscribers. */
  announce(message: LiveMessage): void;
}

type Subscriber = (message: LiveMessage) => void;

/** The most runs that a new subscriber receives. */
const RUNS_MAX = 100;

/** Creates an empty list. @param flow - makes the message with the latest flow */
export function createSubscribers(flow: () => LiveMessage): Subscribers {
  const sends = new Set<Subscriber>();
  const kept = new Map<string, LiveMessage>();

  function deliver(send: Subscriber, message: LiveMessage): void {
    try {
      send(message);
    } catch {
      // The tab was closed; its stream reports that next.
      sends.delete(send);
    }
  }

  function toAll(message: LiveMessage): void {
    for (const send of [...sends]) deliver(send, message);
  }

  return {
    count: () => sends.size,
    add: (send) => {
      // Two subscriptions of one function are two.
      const own: Subscriber = (message) => send(message);
      sends.add(own);
      for (const message of [flow(), ...kept.values()]) deliver(own, message);
      return () => sends.delete(own);
    },
    send: () => {
      if (sends.size > 0) toAll(flow());
    },
    announce: (message) => {
      if (message.kind !== 'flow') {
        const name = message.kind === 'run' ? `run ${message.run.id}` : message.kind;
        kept.set(name, message);
        const runs = [...kept.keys()].filter((key) => key !== 'demo');
        for (const old of runs.slice(0, -RUNS_MAX)) kept.delete(old);
      }
      toAll(message);
    },
  };
}
