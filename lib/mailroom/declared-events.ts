import type { EventRef } from '../../lambdas/runtime/events/event.ts';
import { serviceNameProblems } from '../checks/names.ts';

/** The events that the services of one Mailroom declare in `publishes`: the relay publishes only these sources. */
export class DeclaredEvents {
  private readonly types = new Map<string, Set<string>>();
  private readonly elsewhere: ReadonlySet<string>;

  /** @param elsewhere - sources of services outside this app, whose event types are unknown */
  constructor(elsewhere: readonly string[]) {
    this.elsewhere = new Set(elsewhere);
  }

  /** Adds the events of one service. */
  add(events: readonly EventRef[]): void {
    for (const { source, type } of events)
      this.types.set(source, (this.types.get(source) ?? new Set<string>()).add(type));
  }

  /** Reports whether a service is known to publish an event. */
  has({ source, type }: EventRef): boolean {
    return this.elsewhere.has(source) || (this.types.get(source)?.has(type) ?? false);
  }

  /** The publishing services, sorted by name. */
  get sources(): string[] {
    return [...new Set([...this.types.keys(), ...this.elsewhere])].sort();
  }

  /** The known events, formatted for messages. */
  get text(): string {
    const all = Array.from(this.types, ([source, types]) => [...types].map((type) => `${source}: ${type}`));
    return all.flat().sort().join(', ') || 'none';
  }
}

/** Validates the events that a service's function publishes: each must be owned by that service. */
export function publishesProblems(service: string, events: readonly EventRef[]): string[] {
  return events.flatMap(({ source, type }) => {
    if (typeof type !== 'string' || type === '')
      return [
        `publishes contains an event of "${source}" without a type. Use a definition, or { source, type }.`,
      ];
    if (source === service) return [];
    return [
      `publishes contains ${type} of "${source}", but the service is "${service}", and only the owner of an event may publish it. ` +
        'Correct the source in its definition, or publish the event from its owner.',
    ];
  });
}

/** Validates `sources` of a Mailroom. */
export function sourcesProblems(sources: readonly string[]): string[] {
  return sources.flatMap((source) => serviceNameProblems('an entry of sources', source));
}
