/** A statement of a resource policy, with single values as lists. */
export interface ReadStatement {
  readonly effect: string;
  readonly actions: readonly string[];
  /** The AWS services that it names as principals. */
  readonly services: readonly string[];
  /** Each condition key with its values, whatever the operator. */
  readonly conditions: ReadonlyMap<string, readonly string[]>;
}

/** Returns the statements of a policy; an empty list without a policy, or if it is not JSON. */
export function statementsOf(policy: string | undefined): ReadStatement[] {
  const { Statement } = objectOf(policy);
  return listOf(Statement).map((statement) => {
    const { Effect, Action, Principal, Condition } = statement as Readonly<Record<string, unknown>>;
    const operators = Object.values({ ...(Condition as object) }) as object[];
    const { Service } = { ...(Principal as object) } as { readonly Service?: unknown };
    return {
      effect: String(Effect),
      actions: listOf(Action).map(String),
      services: listOf(Service).map(String),
      conditions: new Map(
        operators.flatMap((keys) =>
          Object.entries(keys).map(([key, values]) => [key, listOf(values).map(String)] as const),
        ),
      ),
    };
  });
}

/** Parses a JSON object; an empty one if it is something else. */
export function objectOf(json: string | undefined): Readonly<Record<string, unknown>> {
  try {
    return { ...JSON.parse(json ?? '{}') };
  } catch {
    return {};
  }
}

/** True if one of the patterns, with IAM's wildcards, matches the whole text. */
export function matchesAny(patterns: readonly string[], text: string): boolean {
  return patterns.some((pattern) => {
    const source = pattern
      .replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replaceAll('*', '.*')
      .replaceAll('?', '.');
    return new RegExp(`^${source}$`, 'i').test(text);
  });
}

function listOf(value: unknown): readonly unknown[] {
  if (value === undefined || value === null) return [];
  return Array.isArray(value) ? value : [value];
}
