import { MailroomError } from './errors.ts';

/** The names of an object's properties, each with whether it is required. The compiler refuses a list that is not complete. */
export type PropNames<P> = {
  readonly [Name in keyof P]-?: Partial<Pick<P, Name>> extends Pick<P, Name> ? 'optional' : 'required';
};

/**
 * Finds required properties that are missing, optional ones that are null and properties that do not exist. Programs in JavaScript have no
 * compiler that does.
 *
 * @param given - as it was passed
 * @param path - the words before each name, e.g. `alarms.`
 * @param instead - what to do instead of a property that people look for here
 *
 * @example
 * ```ts
 * nameProblems({ table }, { mailroom: 'required', dashboard: 'optional' });
 * // ['mailroom is missing.', 'table is not a property. Properties: mailroom, dashboard.']
 * ```
 */
export function nameProblems(
  given: object | undefined,
  names: Readonly<Record<string, 'optional' | 'required'>>,
  path = '',
  instead: Readonly<Record<string, string>> = {},
): string[] {
  const values = Object(given) as Readonly<Record<string, unknown>>;
  const known = Object.entries(names);
  const missing = known.filter(([name, kind]) => kind === 'required' && isAbsent(values[name]));
  // Defaults replace only undefined.
  const nulls = known.filter(([name, kind]) => kind === 'optional' && values[name] === null);
  const unknown = Object.keys(values).filter(
    (name) => !isAbsent(values[name]) && !Object.hasOwn(names, name),
  );
  const list = known.map(([name]) => name).join(', ');
  return [
    ...missing.map(([name]) => `${path}${name} is missing.`),
    ...nulls.map(([name]) => `${path}${name} is null. Set it or omit it.`),
    ...unknown.map((name) => `${path}${name} is not a property. ${instead[name] ?? `Properties: ${list}.`}`),
  ];
}

/**
 * Throws if a function received an object without some of its required members. Others are allowed: one object may be passed to several
 * functions.
 *
 * @throws `BAD_ARGUMENT`, naming each missing member
 */
export function requireGiven<P extends object>(
  to: string,
  given: P | undefined,
  ...required: readonly (keyof P & string)[]
): void {
  const values = Object(given) as Readonly<Record<string, unknown>>;
  const missing = required.filter((name) => isAbsent(values[name]));
  if (missing.length === 0) return;
  const [subject, verb] = [missing.join(', '), missing.length === 1 ? 'is' : 'are'];
  throw new MailroomError(
    'BAD_ARGUMENT',
    `${to}: ${subject} ${verb} missing. Pass an object with ${required.join(', ')}.`,
  );
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}
