import { MailroomError } from './errors.ts';

/** An environment variable of a function. */
export interface Field<T> {
  readonly env: string;
  readonly parse: (text: string) => T | undefined;
  /** @default a list as JSON, and other values as text */
  format?(value: T): string;
  readonly expected: string;
  /** The variable may be missing. @default false */
  readonly optional?: boolean;
  /** The origin of its value, for the error if it is missing. @default the constructs set it */
  readonly origin?: string;
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

/** One of a few words; it may be missing. */
export function choice<T extends string>(env: string, words: readonly T[]): Field<T> {
  return {
    env,
    parse: (value) => words.find((word) => word === value),
    expected: words.join(' or '),
    optional: true,
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

/** The settings of a function, as its constructs write them and its code reads them. */
export interface EnvironmentSettings<C> {
  /** Encodes them as environment variables; one that is `undefined` is left out. */
  encode(config: C): Record<string, string>;
  /**
   * Reads them from a function's environment.
   *
   * @throws `BAD_CONFIG`, naming the variable, if one is missing or out of range
   */
  read(env: Environment): C;
}

/** The type of the values of settings. */
export type ConfigOf<S> = S extends EnvironmentSettings<infer C> ? Readonly<C> : never;

const REMEDY =
  "pass a producer's function to mailroom.addProducer, create a consumer with InboxConsumer, or set the variable yourself " +
  '(docs/without-cdk.md lists all variables).';

/**
 * Declares the settings of a function: one environment variable for each.
 *
 * @param remedy - the end of the sentence that every error of `read` ends with
 *
 * @example
 * ```ts
 * const alarmSettings = settings({ tableName: text('MAILROOM_TABLE'), everyMs: integer('MAILROOM_EVERY_MS', 1, 60_000) });
 * const environment = alarmSettings.encode({ tableName: 'Mailroom', everyMs: 1_000 });
 * ```
 */
export function settings<C extends object>(fields: Fields<C>, remedy = REMEDY): EnvironmentSettings<C> {
  const entries = Object.entries(fields) as [keyof C, Fields<C>[keyof C]][];
  return {
    encode: (config) =>
      Object.fromEntries(
        entries.flatMap(([name, { env, format = textOf }]) => {
          const value = config[name];
          return value === undefined || value === null ? [] : [[env, format(value)]];
        }),
      ),
    read: (env) =>
      Object.fromEntries(
        entries.flatMap(([name, field]) => {
          const value = env[field.env];
          return value === undefined && field.optional ? [] : [[name, parsed(field, value, remedy)]];
        }),
      ) as C,
  };
}

function textOf(value: unknown): string {
  return Array.isArray(value) ? JSON.stringify(value) : String(value);
}

function parsed<T>(
  { env, parse, expected, origin = "Mailroom's constructs set it" }: Field<T>,
  value: string | undefined,
  remedy: string,
): T {
  const result = value === undefined ? undefined : parse(value);
  if (result !== undefined) return result;
  const found = value === undefined ? 'is not set' : `is "${value}"`;
  throw new MailroomError(
    'BAD_CONFIG',
    `Environment variable ${env} ${found}; expected ${expected}. ${origin}; ${remedy}`,
  );
}
