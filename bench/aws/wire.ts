/** The JSON members of a request or response. */
export type Wire = Record<string, unknown>;

/** Binaries are base64 text under `B` and `BS`. */
type Binary = string | readonly string[];

/** Parses a request: DynamoDB values, with their binaries as bytes. */
export function readWire(body: string | Uint8Array | undefined): Wire {
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body);
  if (!/"BS?":/.test(text)) return JSON.parse(text === '' ? '{}' : text) as Wire;
  return JSON.parse(text, (name, value: unknown) => {
    if (name === 'B' && typeof value === 'string') return bytes(value);
    if (name === 'BS' && Array.isArray(value)) return value.map((each: unknown) => bytes(each as Binary));
    return value;
  }) as Wire;
}

/** Serialises a response. */
export function writeWire(answer: Wire): string {
  return JSON.stringify(answer, (_, value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value,
  );
}

/** Throws if a request has an unsupported member: a count that ignores it would be wrong. */
export function known(operation: string, input: Wire, members: readonly string[]): void {
  const strange = Object.keys(input).filter((name) => !members.includes(name));
  if (strange.length === 0) return;
  throw new Error(`The metered AWS does not support ${operation} with ${strange.join(', ')}`);
}

function bytes(base64: Binary): Uint8Array {
  return Uint8Array.from(Buffer.from(base64 as string, 'base64'));
}
