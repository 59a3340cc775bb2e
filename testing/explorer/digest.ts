/** A digest of a value: equal texts for equal values. Includes errors and sets, which JSON omits. */
export function digest(value: unknown): string {
  return (
    JSON.stringify(value, (_key, part: unknown) => {
      if (part instanceof Set) return { set: [...part].sort() };
      if (part instanceof Error) return { ...part, error: `${part.name}: ${part.message}` };
      return part;
    }) ?? 'undefined'
  );
}

/** Returns true if two items are equal. */
export function equalItems(one: unknown, other: unknown): boolean {
  return one === other || digest(one) === digest(other);
}
