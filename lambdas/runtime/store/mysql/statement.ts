/** A part of a statement: its text, and the values of its parameters in their order. */
export interface StatementPart {
  readonly text: string;
  readonly values: readonly unknown[];
}

export function part(text: string, ...values: unknown[]): StatementPart {
  return { text, values };
}

/** Joins parts and texts without parameters. */
export function joined(parts: readonly (StatementPart | string)[], separator = ''): StatementPart {
  const all = parts.map((one) => (typeof one === 'string' ? part(one) : one));
  return {
    text: all.map(({ text }) => text).join(separator),
    values: all.flatMap(({ values }) => values),
  };
}
