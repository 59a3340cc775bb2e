import { MailroomError } from './errors.ts';

/**
 * The constructs pass settings to the functions as environment variables. The constructs encode them and the functions decode
 * them with the same codec, and errors on both sides name the variable.
 */
interface Field<T> {
  readonly env: string;
  readonly parse: (text: string) => T | undefined;
  readonly expected: string;
  /** The variable may be missing. @default false */
  readonly optional?: boolean;
}

/** The variables of a configuration. */
export type Fields<C> = { readonly [K in keyof C]-?: Field<NonNullable<C[K]>> };

/** A text that is not empty. */
export function text(env: string): Field<string> {
  return { env, parse: (value) => (value === '' ? undefined : value), expected: 'a non-empty string' };
}

/** The name or the ARN of an event bus (EventBridge API reference, PutEventsRequestEntry). */
export function busName(env: string): Field<string> {
  return {
    env,
    parse: (value) => (/^[/.\-_A-Za-z0-9:]{1,1600}$/.test(value) ? value : undefined),
    expected: 'the name or ARN of an event bus',
  };
}

/** A whole number from `min` to `max`. */
export function integer(env: string, min: number, max: number): Field<number> {
  return {
    env,
    parse: (value) => {
      const number = Number(value);
      return value.trim() !== '' && Number.isSafeInteger(number) && number >= min && number <= max
        ? number
        : undefined;
    },
    expected: `a whole number from ${min} to ${max}`,
  };
}

/** A yes or no. */
export function flag(env: string): Field<boolean> {
  return {
    env,
    parse: (value) => ({ true: true, false: false })[value],
    expected: 'true or false',
  };
}

/** A JSON list of names, because an event type may contain any character that could serve as a separator. */
export function names(env: string): Field<readonly string[]> {
  return {
    env,
    parse: (value) => {
      try {
        const list: unknown = JSON.parse(value);
        return Array.isArray(list) && list.every((name) => typeof name === 'string') ? list : undefined;
      } catch {
        return undefined;
      }
    },
    expected: 'a JSON list of strings, such as ["OrderPlaced"]',
  };
}

/** A function's environment, `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Encodes settings as environment variables. */
export function encode<C extends object>(fields: Fields<C>, config: C): Record<string, string> {
  return Object.fromEntries(
    entriesOf(fields).flatMap(([name, field]) =>
      config[name] === undefined ? [] : [[field.env, textOf(config[name])]],
    ),
  );
}

function textOf(value: unknown): string {
  return Array.isArray(value) ? JSON.stringify(value) : String(value);
}

const REMEDY =
  "pass a producer's function to mailroom.addProducer, create a consumer with InboxConsumer, or set the variable yourself " +
  '(docs/without-cdk.md lists all variables).';

/**
 * Reads settings from environment variables.
 *
 * @throws `BAD_CONFIG`, naming the variable, if one is missing or out of range
 */
export function decode<C extends object>(fields: Fields<C>, env: Environment, remedy = REMEDY): C {
  const entries = entriesOf(fields).flatMap(([name, field]) => {
    const value = env[field.env];
    if (value === undefined && field.optional) return [];
    const parsed = value === undefined ? undefined : field.parse(value);
    if (parsed === undefined) {
      const found = value === undefined ? 'is not set' : `is "${value}"`;
      throw new MailroomError(
        'BAD_CONFIG',
        `Environment variable ${field.env} ${found}; expected ${field.expected}. Mailroom's constructs set it; ${remedy}`,
      );
    }
    return [[name, parsed]];
  });
  return Object.fromEntries(entries) as C;
}

function entriesOf<C extends object>(fields: Fields<C>) {
  return Object.entries(fields) as [keyof C, Fields<C>[keyof C]][];
}
