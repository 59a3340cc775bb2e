import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { AnyEventDefinition, EventRef } from '../../lambdas/runtime/events/event.ts';
import { serviceNameProblems } from '../checks/names.ts';
import { unless } from '../checks/refusal.ts';

/** The events that the services of one Mailroom declare in `publishes`: the relay publishes only these sources. */
export class DeclaredEvents {
  private readonly types = new Map<string, Map<string, EventRef>>();
  private readonly elsewhere: ReadonlySet<string>;

  /** @param elsewhere - sources of services outside this app, whose event types are unknown */
  constructor(elsewhere: readonly string[]) {
    this.elsewhere = new Set(elsewhere);
  }

  /** Adds the events of one service. */
  add(events: readonly EventRef[]): void {
    for (const event of events) {
      const { source, type } = event;
      const ofSource = this.types.get(source) ?? new Map<string, EventRef>();
      // A definition also names its aggregate, which a later `{ source, type }` does not.
      if (!ofSource.has(type) || aggregateOf(event) !== undefined) ofSource.set(type, event);
      this.types.set(source, ofSource);
    }
  }

  /** Reports whether a service is known to publish an event. */
  has({ source, type }: EventRef): boolean {
    return this.elsewhere.has(source) || (this.types.get(source)?.has(type) ?? false);
  }

  /** The aggregate that an event's `sequence` numbers, and the known types of those numbers; `undefined` if it has none. */
  numbersOf(
    event: EventRef,
  ): { readonly aggregateType: string; readonly types: readonly string[] } | undefined {
    const known = this.types.get(event.source);
    const aggregateType = aggregateOf(event) ?? aggregateOf(known?.get(event.type));
    if (aggregateType === undefined) return undefined;
    const same = [...(known?.values() ?? [])].filter((other) => aggregateOf(other) === aggregateType);
    return { aggregateType, types: same.map(({ type }) => type) };
  }

  /** The publishing services, sorted by name. */
  get sources(): string[] {
    return [...new Set([...this.types.keys(), ...this.elsewhere])].sort();
  }

  /** The known events, formatted for messages. */
  get text(): string {
    const all = Array.from(this.types, ([source, types]) =>
      [...types.keys()].map((type) => `${source}: ${type}`),
    );
    return all.flat().sort().join(', ') || 'none';
  }
}

/** The kind of aggregate that an event's `sequence` numbers; `undefined` if its definition declares no `sequence`, or is not given. */
export function aggregateOf(event: EventRef | undefined): string | undefined {
  const { aggregateType, sequence }: Partial<AnyEventDefinition> = event ?? {};
  return sequence === true ? aggregateType : undefined;
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

/** The use of a function as a producer or as a consumer of a Mailroom. */
export interface FunctionUse {
  /** The path of the Mailroom. */
  readonly mailroom: string;
  readonly service: string;
  /** The events that its code publishes in this use. */
  readonly publishes: readonly EventRef[];
  /** The path of the consumer; absent for a producer. */
  readonly consumer?: string;
}

/** The uses of each function: its environment holds one Mailroom, one service and one consumer. */
const USES = new WeakMap<LambdaFunction, readonly FunctionUse[]>();

/** Validates a further use of a function: its environment variables must suit every use. */
export function useProblems(
  used: LambdaFunction,
  { mailroom, service, consumer }: Omit<FunctionUse, 'publishes'>,
): string[] {
  const uses = USES.get(used) ?? [];
  const elsewhere = uses.find((use) => use.mailroom !== mailroom);
  const other = uses.find((use) => use.service !== service);
  const taken = consumer === undefined ? undefined : uses.find((use) => use.consumer !== undefined);
  const { path } = used.node;
  return [
    ...unless(
      taken === undefined,
      `function.existing is ${path}, which ${taken?.consumer} already uses: the environment of a function holds the settings of one consumer. ` +
        `Subscribe ${taken?.consumer} to the events of both, or use two functions with the same code.`,
    ),
    ...unless(
      elsewhere === undefined,
      `The function ${path} already belongs to the Mailroom ${elsewhere?.mailroom}: its environment holds the settings of one Mailroom. ` +
        'Use two functions.',
    ),
    ...unless(
      other === undefined,
      `service is "${service}", but the function ${path} already publishes as "${other?.service}": its environment holds one service. Use ` +
        'the same service, or two functions.',
    ),
  ];
}

/**
 * Records a use of a function.
 *
 * @returns the events that its code publishes in all its uses so far
 */
export function addUse(used: LambdaFunction, use: FunctionUse): readonly EventRef[] {
  const uses = [...(USES.get(used) ?? []), use];
  USES.set(used, uses);
  return uses.flatMap(({ publishes }) => publishes);
}
