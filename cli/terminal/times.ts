import { isTime } from '../../lambdas/runtime/base/clock.ts';

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** A duration as its two largest units, e.g. `2 h 5 min`: in the command and on its page. */
export function duration(ms: number): string {
  if (Number.isNaN(ms)) return '?';
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  const first = UNITS.findIndex(([, size]) => ms >= size);
  const shown = UNITS.slice(first, first + 2).map(([unit, size], index) => {
    const above = index === 0 ? Number.POSITIVE_INFINITY : (UNITS[first]?.[1] ?? 1);
    return [Math.floor((ms % above) / size), unit] as const;
  });
  return shown
    .filter(([count], index) => index === 0 || count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ');
}

/** A time in UTC, to the second, e.g. `2026-11-22 14:05:09Z`; `?` for an invalid one. */
export function time(ms: number): string {
  if (!isTime(ms)) return '?';
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')}Z`;
}
