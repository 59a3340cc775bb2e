import { isTime } from '../../../../lambdas/runtime/base/clock.ts';
import { duration } from '../../../terminal/times.ts';

/** A duration as its largest unit, e.g. `3 s`: for ages that change while one looks at them. */
export function roughly(ms: number): string {
  return duration(Math.max(ms, 1_000)).split(' ').slice(0, 2).join(' ');
}

/** A whole number in groups of three, e.g. `10,000`. */
export function count(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 0 });
}

/** A number with its noun, e.g. `1 message`, `2 messages`. */
export function many(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** A rate per second, e.g. `0.4/s`, `12/s`. */
export function rate(perS: number): string {
  return `${perS > 0 && perS < 9.95 ? perS.toFixed(1) : count(Math.round(perS))}/s`;
}

/** A time of day in UTC to the millisecond; `?` for an invalid one. */
export function preciseTime(ms: number): string {
  return isTime(ms) ? new Date(ms).toISOString().slice(11, 23) : '?';
}

/** A long id as the part that a list hides and its end. An event id begins with its time, so the beginnings of neighbours are equal. */
export function idParts(id: string): readonly [start: string, end: string] {
  const characters = [...id];
  if (characters.length <= 13) return ['', id];
  return [characters.slice(0, -8).join(''), characters.slice(-8).join('')];
}
