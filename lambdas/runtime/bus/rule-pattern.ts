import type { EventRef } from '../event.ts';

/** The events that a rule matches: the types of one service, or of each of several. */
interface OfOneSource {
  readonly source: string[];
  readonly 'detail-type': string[];
}

/** The pattern of a consumer's rule, in the format of EventBridge. */
export interface RulePattern extends Partial<OfOneSource> {
  readonly $or?: OfOneSource[];
}

/**
 * Makes the pattern of a rule that matches exactly these events. The members of one pattern match independently, so a pattern
 * with two sources and two types would match four events. `$or` keeps each source together with its own types (EventBridge user
 * guide, "Comparison operators for use in event patterns").
 *
 * @example
 * ```ts
 * encodeRulePattern([OrderPlaced, PaymentDeclined]);
 * // { $or: [{ source: ['orders'], 'detail-type': ['OrderPlaced'] }, { source: ['payments'], 'detail-type': ['PaymentDeclined'] }] }
 * ```
 */
export function encodeRulePattern(events: readonly EventRef[]): RulePattern {
  const typesOf = new Map<string, Set<string>>();
  for (const { source, type } of events)
    typesOf.set(source, (typesOf.get(source) ?? new Set<string>()).add(type));
  const patterns = Array.from(typesOf, ([source, types]) => ({
    source: [source],
    'detail-type': [...types],
  }));
  return patterns.length === 1 && patterns[0] !== undefined ? patterns[0] : { $or: patterns };
}

/**
 * Returns true if a deployed pattern matches exactly these events: all of them, no others, and without further conditions.
 *
 * @param pattern - as JSON
 */
export function takesExactly(pattern: string, events: readonly EventRef[]): boolean {
  const taken = pairsOf(pattern);
  if (taken === undefined) return false;
  const declared = new Set(events.map(pairText));
  return taken.size === declared.size && [...taken].every((pair) => declared.has(pair));
}

/** The events that a pattern matches, as texts; `undefined` if the pattern does not have the form that the constructs write. */
function pairsOf(pattern: string): ReadonlySet<string> | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(pattern);
  } catch {
    return undefined;
  }
  const { $or: alternatives, ...others } = { ...(parsed as Record<string, unknown>) };
  if (alternatives === undefined) return pairsOfOne(others);
  if (!Array.isArray(alternatives) || Object.keys(others).length > 0) return undefined;
  const each = alternatives.map(pairsOfOne);
  if (each.includes(undefined)) return undefined;
  return new Set(each.flatMap((pairs) => [...(pairs ?? [])]));
}

/** Expands one pattern, which matches every combination of its sources and types. */
function pairsOfOne(pattern: unknown): ReadonlySet<string> | undefined {
  const { source, 'detail-type': types, ...others } = { ...(pattern as Record<string, unknown>) };
  if (Object.keys(others).length > 0 || !isTexts(source) || !isTexts(types)) return undefined;
  return new Set(source.flatMap((one) => types.map((type) => pairText({ source: one, type }))));
}

function pairText({ source, type }: EventRef): string {
  return JSON.stringify([source, type]);
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((text) => typeof text === 'string');
}
