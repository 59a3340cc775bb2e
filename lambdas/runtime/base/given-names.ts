/** The names of an object's properties, each with whether it is required. The compiler refuses a list that is not complete. */
export type PropNames<P> = {
  readonly [Name in keyof P]-?: Partial<Pick<P, Name>> extends Pick<P, Name> ? 'optional' : 'required';
};

/**
 * Finds required properties that are missing and properties that do not exist. Programs in JavaScript have no compiler that does.
 *
 * @param given - as it was passed
 * @param path - the words before each name, e.g. `alarms.`
 *
 * @example
 * ```ts
 * nameProblems({ table }, { mailroom: 'required', dashboard: 'optional' });
 * // ['mailroom is missing.', 'table is not a property. Properties: mailroom, dashboard.']
 * ```
 */
export function nameProblems<P extends object>(
  given: P | undefined,
  names: PropNames<P>,
  path = '',
): string[] {
  const values = Object(given) as Readonly<Record<string, unknown>>;
  const known = Object.entries<'optional' | 'required'>(names);
  const missing = known.filter(([name, kind]) => kind === 'required' && isAbsent(values[name]));
  const unknown = Object.keys(values).filter(
    (name) => !isAbsent(values[name]) && !Object.hasOwn(names, name),
  );
  const list = known.map(([name]) => name).join(', ');
  return [
    ...missing.map(([name]) => `${path}${name} is missing.`),
    ...unknown.map((name) => `${path}${name} is not a property. Properties: ${list}.`),
  ];
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}
