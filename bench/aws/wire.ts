/** The JSON members of a request or response. */
export type Wire = Record<string, unknown>;

/** The result of an operation: its response or error, and its units in either case. */
export interface Metered {
  readonly answer: Wire;
  /** The error's name, if `answer` contains an error's members. */
  readonly error?: string | undefined;
  readonly writeUnits?: number;
  readonly readUnits?: number;
}

/** Parses a request: DynamoDB values, with their binaries, which are base64 text, as bytes. */
export function readWire(body: string | Uint8Array | undefined): Wire {
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body);
  if (!/"BS?":/.test(text)) return JSON.parse(text === '' ? '{}' : text) as Wire;
  return JSON.parse(text, (name, value: unknown) => {
    if (name === 'B' && typeof value === 'string') return bytes(value);
    if (name === 'BS' && Array.isArray(value)) return value.map(bytes);
    return value;
  }) as Wire;
}

/** Serializes a response. */
export function writeWire(answer: Wire): string {
  return JSON.stringify(answer, (_, value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value,
  );
}

/** Throws if a request has an unsupported member: a count that ignores it would be wrong. */
export function known(operation: string, input: Wire, members: readonly string[]): void {
  const strange = Object.keys(input).filter((name) => !members.includes(name));
  if (strange.length > 0)
    throw new Error(`The metered AWS does not support ${operation} with ${strange.join(', ')}`);
}

function bytes(base64: string): Uint8Array {
  return Uint8Array.from(Buffer.from(base64, 'base64'));
}
