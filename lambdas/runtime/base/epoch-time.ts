/**
 * The units in which senders write a time since 1970, by the size of the number: each interval holds the years 1973 to 5138 of its unit,
 * so no number is in two.
 */
const UNITS = [
  { below: 1e11, toMs: (seconds: number) => seconds * 1_000 },
  { below: 1e14, toMs: (ms: number) => ms },
  { below: 1e17, toMs: (us: number) => us / 1_000 },
  { below: 1e20, toMs: (ns: number) => ns / 1e6 },
] as const;

const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;

/**
 * Reads a time of another system: a number of seconds (also with a fraction), milliseconds, microseconds or nanoseconds since 1970, or
 * ISO 8601 text with a time zone.
 *
 * @returns epoch milliseconds; `undefined` for any other value
 *
 * @example
 * ```ts
 * epochMs(1_767_225_600); // 1767225600000
 * epochMs('2026-01-01T00:00:00Z'); // 1767225600000
 * ```
 */
export function epochMs(value: unknown): number | undefined {
  if (typeof value === 'number') {
    const unit = value >= 0 ? UNITS.find(({ below }) => value < below) : undefined;
    return unit && Math.floor(unit.toMs(value));
  }
  const ms = typeof value === 'string' && ISO_TIME.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}
