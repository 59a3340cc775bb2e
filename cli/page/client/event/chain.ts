/** An event in the chain of causes, with its depth below the first. */
export interface ChainLink<Event> {
  readonly event: Event;
  readonly depth: number;
}

/** The chain in reading order: each event, followed by the events that it caused. */
export function chainOf<Event extends { readonly eventId: string; readonly caused: readonly string[] }>(
  events: readonly Event[],
): ChainLink<Event>[] {
  const known = new Map(events.map((event) => [event.eventId, event]));
  const caused = new Set(events.flatMap((event) => event.caused));
  const links = new Map<string, ChainLink<Event>>();
  const add = (event: Event, depth: number): void => {
    if (links.has(event.eventId)) return; // a row changed by hand may make a circle
    links.set(event.eventId, { event, depth });
    for (const id of event.caused) {
      const child = known.get(id);
      if (child !== undefined) add(child, depth + 1);
    }
  };
  for (const event of events) if (!caused.has(event.eventId)) add(event, 0);
  for (const event of events) add(event, 0);
  return [...links.values()];
}
