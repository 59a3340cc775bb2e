import type { EventRef } from '../lambdas/runtime/event.ts';
import { serviceNameProblems } from './names.ts';

/** The events that the services of one Mailroom declare to publish: the ones that its relay lets through. */
export class DeclaredEvents {
  private readonly types = new Map<string, Set<string>>();
  private readonly elsewhere: ReadonlySet<string>;

  /** @param elsewhere - the sources of services that are no part of the app: their events are not known */
  constructor(elsewhere: readonly string[]) {
    this.elsewhere = new Set(elsewhere);
  }

  /** Adds the events of one service. */
  add(events: readonly EventRef[]): void {
    for (const { source, type } of events)
      this.types.set(source, (this.types.get(source) ?? new Set<string>()).add(type));
  }

  /** Whether a service publishes an event, as far as the app knows. */
  has({ source, type }: EventRef): boolean {
    return this.elsewhere.has(source) || (this.types.get(source)?.has(type) ?? false);
  }

  /** The services that publish, in the order of their names. */
  get sources(): string[] {
    return [...new Set([...this.types.keys(), ...this.elsewhere])].sort();
  }

  /** The known events, for people. */
  get text(): string {
    const all = Array.from(this.types, ([source, types]) => [...types].map((type) => `${source}: ${type}`));
    return all.flat().sort().join(', ') || 'none';
  }
}

/** What is wrong with the events that a function of a service publishes: a service owns each event that it publishes. */
export function publishesProblems(service: string, events: readonly EventRef[]): string[] {
  return events.flatMap(({ source, type }) => {
    if (typeof type !== 'string' || type === '')
      return [
        `publishes holds an event of "${source}" without a type; use a definition, or { source, type }.`,
      ];
    if (source === service) return [];
    return [
      `publishes holds ${type} of "${source}", but the service is "${service}", and only the owner of an event publishes it. ` +
        'Correct the source in its definition, or publish it where the owner runs.',
    ];
  });
}

/** What is wrong with `sources` of a Mailroom. */
export function sourcesProblems(sources: readonly string[]): string[] {
  return sources.flatMap((source) => serviceNameProblems('an entry of sources', source));
}
