import { duration } from '../../../terminal/times.ts';

const [SECOND, MINUTE, HOUR, DAY] = [1_000, 60_000, 3_600_000, 86_400_000];

/** The steps that a time axis may have, milliseconds: the numbers in which people count. */
const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
  ...[1, 2, 5, 10, 20, 50, 100].map((n) => n * DAY),
];

/** The most steps between two ends: more labels would touch at 320 pixels. */
const STEPS_MAX = 4;

/** A labelled moment on a time axis. */
interface Tick {
  /** Its place: 0 is the first moment, 1 the last. */
  readonly part: number;
  readonly text: string;
  /** The side of its text that is at its place: texts at the ends stay inside of the axis. */
  readonly anchor: 'start' | 'middle' | 'end';
}

/** The labels of a time axis, at round times. @param span - milliseconds, above 0 */
export function ticksOf(span: number): readonly Tick[] {
  const step = STEPS.find((size) => span / size <= STEPS_MAX) ?? span;
  return Array.from({ length: Math.floor(span / step) + 1 }, (_, index) => {
    const at = index * step;
    // A duration of seconds would hide the milliseconds of 1,500 ms.
    const text = step < SECOND ? `${at.toLocaleString('en-US')} ms` : duration(at);
    const part = at / span;
    const anchor = at === 0 ? 'start' : part > 0.9 ? 'end' : 'middle';
    return { part, anchor, text: at === 0 ? '0' : text };
  });
}
