import type { DataFilter, Subscription } from '../events/data-filter.ts';
import type { EventRef } from '../events/event.ts';

/** The events that one alternative of a rule matches: types of one service, or those of one type that a filter matches. */
interface Alternative {
  readonly source: string[];
  readonly 'detail-type': string[];
  readonly detail?: { readonly data: DataFilter };
}

/** The pattern of a consumer's rule, in the format of EventBridge. */
export interface RulePattern extends Partial<Alternative> {
  readonly $or?: Alternative[];
}

/**
 * Makes the pattern of a rule that matches exactly these events. The members of one pattern match independently, so a pattern
 * with two sources and two types would match four events. `$or` keeps each source together with its own types, and each filter
 * with its own event (EventBridge user guide, "Comparison operators for use in event patterns").
 *
 * @example
 * ```ts
 * encodeRulePattern([OrderPlaced, PaymentDeclined]);
 * // { $or: [{ source: ['orders'], 'detail-type': ['OrderPlaced'] }, { source: ['payments'], 'detail-type': ['PaymentDeclined'] }] }
 * ```
 */
export function encodeRulePattern(events: readonly Subscription[]): RulePattern {
  const typesOf = new Map<string, Set<string>>();
  for (const { source, type } of events.filter(({ filter }) => filter === undefined))
    typesOf.set(source, (typesOf.get(source) ?? new Set<string>()).add(type));
  const whole = Array.from(typesOf, ([source, types]) => ({ source: [source], 'detail-type': [...types] }));
  const filtered = events.flatMap(({ source, type, filter }) =>
    filter === undefined ? [] : [{ source: [source], 'detail-type': [type], detail: { data: filter } }],
  );
  const patterns = [...whole, ...filtered];
  return patterns.length === 1 && patterns[0] !== undefined ? patterns[0] : { $or: patterns };
}

/**
 * Returns true if a deployed pattern matches exactly these events: all of them, no others, and without further conditions.
 *
 * @param pattern - as JSON
 */
export function takesExactly(pattern: string, events: readonly Subscription[]): boolean {
  const taken = takenBy(pattern);
  if (taken === undefined) return false;
  const declared = new Set(events.map(({ filter, ...event }) => takenText(event, filter)));
  return taken.size === declared.size && [...taken].every((text) => declared.has(text));
}

/** The events that a pattern matches, as texts; `undefined` if the pattern does not have the form that the constructs write. */
function takenBy(pattern: string): ReadonlySet<string> | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(pattern);
  } catch {
    return undefined;
  }
  const { $or: alternatives, ...others } = { ...(parsed as Record<string, unknown>) };
  if (alternatives === undefined) return takenByOne(others);
  if (!Array.isArray(alternatives) || Object.keys(others).length > 0) return undefined;
  const each = alternatives.map(takenByOne);
  if (each.includes(undefined)) return undefined;
  return new Set(each.flatMap((texts) => [...(texts ?? [])]));
}

/** Expands one pattern, which matches every combination of its sources and types. */
function takenByOne(pattern: unknown): ReadonlySet<string> | undefined {
  const {
    source,
    'detail-type': types,
    detail = { data: undefined },
    ...others
  } = { ...(pattern as Readonly<Record<string, unknown>>) };
  const { data, ...beside } = { ...(detail as Readonly<Record<string, unknown>>) };
  const unknown = [...Object.keys(others), ...Object.keys(beside)];
  if (unknown.length > 0 || !isTexts(source) || !isTexts(types)) return undefined;
  return new Set(source.flatMap((one) => types.map((type) => takenText({ source: one, type }, data))));
}

/** Names an event and its filter, whatever the order of the filter's members: a deployment may change it. */
function takenText({ source, type }: EventRef, filter: unknown): string {
  return JSON.stringify([source, type, filter], (_, value: unknown) =>
    typeof value !== 'object' || value === null || Array.isArray(value)
      ? value
      : Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))),
  );
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((text) => typeof text === 'string');
}
