/** A value as one text: equal texts for equal values. Errors and sets included, which JSON leaves out. */
export function digest(value: unknown): string {
  return (
    JSON.stringify(value, (_key, part: unknown) => {
      if (part instanceof Set) return { set: [...part].sort() };
      if (part instanceof Error) return { ...part, error: `${part.name}: ${part.message}` };
      return part;
    }) ?? 'undefined'
  );
}

/** Whether two items are the same. */
export function equalItems(one: unknown, other: unknown): boolean {
  return one === other || digest(one) === digest(other);
}
