import type { StandardSchemaV1 } from '@standard-schema/spec';
import { requireGiven } from '../base/given-names.ts';
import type { JsonOf } from '../base/json.ts';
import type { DataFilter, Scalar, Subscription, TextOperator } from './data-filter.ts';
import type { AnyEventDefinition, EventRef } from './event.ts';

/** Options of {@link subscribe}. */
export interface SubscribeOptions<E extends EventRef> {
  /**
   * The events to receive: an EventBridge pattern on the payload. Each field has a list of tests, of which one must match; all
   * fields must match. A test is a value, or one operator: `prefix`, `suffix`, `equals-ignore-case`, `wildcard`, `numeric`, `exists`
   * or `anything-but`.
   *
   * It is compared with the payload as published: before `upcast`, and as JSON, in which a `Date` is a string.
   *
   * @default every event
   */
  readonly filter?: EventFilter<E> | undefined;
}

/** A filter on the payload of an event, typed by its schema; for `{ source, type }`, any filter. */
export type EventFilter<E extends EventRef> = E extends AnyEventDefinition
  ? FilterOf<JsonOf<PublishedData<E>>>
  : DataFilter;

/** The payload of an event as it is published. */
type PublishedData<E> = E extends { readonly schema: infer S extends StandardSchemaV1 }
  ? StandardSchemaV1.InferInput<S>
  : never;

/** A filter on an object; `never` for a payload without fields. */
type FilterOf<D> = D extends readonly unknown[]
  ? never
  : D extends object
    ? { readonly [F in keyof D]?: FieldFilter<D[F]> }
    : never;

/** The filter on a field: on its values or, if it is an object, on its fields. */
type FieldFilter<V> = unknown extends V
  ? DataFilter[string]
  :
      | ([Extract<Elements<V>, Scalar>] extends [never]
          ? never
          : readonly Test<Extract<Elements<V>, Scalar>>[])
      | FilterOf<Exclude<Elements<V>, Scalar | undefined>>;

/** A list is matched by its elements. */
type Elements<V> = V extends readonly (infer Element)[] ? Elements<Element> : V;

type Test<V> =
  | V
  | { readonly exists: boolean }
  | TextTest<Extract<V, string>>
  | NumberTest<Extract<V, number>>;

type TextTest<V> = [V] extends [never]
  ? never
  : Operated<string> | { readonly 'anything-but': V | readonly V[] | Operated<string | readonly string[]> };

type Operated<T> = { readonly [O in TextOperator]: { readonly [N in O]: T } }[TextOperator];

type NumberTest<V> = [V] extends [never]
  ? never
  : { readonly numeric: NumericRange } | { readonly 'anything-but': V | readonly V[] };

/** A comparison, or a range: its lower end first. */
type NumericRange =
  | readonly ['=' | '<' | '<=' | '>' | '>=', number]
  | readonly ['>' | '>=', number, '<' | '<=', number];

/**
 * Subscribes a consumer to the events of one type that a filter matches. The other events of the type never reach its queue, and
 * the audit does not expect them. Only the rule applies the filter: a message that is already queued is processed even if a changed
 * filter no longer matches it. `InboxConsumer` refuses a filter that EventBridge does not support (`BAD_SETTINGS`), and
 * any filter of an external event.
 *
 * @param event - a definition of the catalog, or `{ source, type }`, whose filter is not type-checked
 *
 * @example
 * ```ts
 * new InboxConsumer(this, 'Customs', {
 *   ...props,
 *   events: [OrderPlaced, subscribe(OrderShipped, { filter: { country: ['CH', 'NO'], totalCents: [{ numeric: ['>=', 10_000] }] } })],
 * });
 * ```
 */
export function subscribe<E extends EventRef>(event: E, options: SubscribeOptions<E>): Subscription {
  requireGiven(`subscribe(${event.type}, …)`, options, 'filter');
  const { filter } = options;
  const { source, type } = event;
  const external = 'external' in event ? { external: event.external } : {}; // InboxConsumer refuses it
  const { aggregateType, sequence }: Partial<AnyEventDefinition> = event;
  const numbered = sequence ? { aggregateType, sequence } : {}; // InboxConsumer refuses it with a strict order
  return { ...external, ...numbered, source, type, filter: filter as DataFilter | undefined };
}
