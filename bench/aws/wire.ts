/** A request's or an answer's members, as they stand in its JSON. */
export type Wire = Record<string, unknown>;

/** Binaries travel as base64 text under `B` and `BS`. */
type Binary = string | readonly string[];

/** Reads a request: values of DynamoDB with their binaries as bytes. */
export function readWire(body: string | Uint8Array | undefined): Wire {
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body);
  if (!/"BS?":/.test(text)) return JSON.parse(text === '' ? '{}' : text) as Wire;
  return JSON.parse(text, (name, value: unknown) => {
    if (name === 'B' && typeof value === 'string') return bytes(value);
    if (name === 'BS' && Array.isArray(value)) return value.map((each: unknown) => bytes(each as Binary));
    return value;
  }) as Wire;
}

/** Writes an answer. */
export function writeWire(answer: Wire): string {
  return JSON.stringify(answer, (_, value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value,
  );
}

/** Makes sure that nothing in a request is passed over: a count of half a request would be wrong. */
export function known(operation: string, input: Wire, members: readonly string[]): void {
  const strange = Object.keys(input).filter((name) => !members.includes(name));
  if (strange.length === 0) return;
  throw new Error(`${operation} with ${strange.join(', ')} is not known to the metered AWS`);
}

function bytes(base64: Binary): Uint8Array {
  return Uint8Array.from(Buffer.from(base64 as string, 'base64'));
}
