import type { DemoReceipt } from '../../server/protocol.ts';

/** The most bars of a band: on a phone, narrower ones cannot be told apart. */
const BARS_MAX = 60;

/** Lengths of time that a bar may stand for, seconds. */
const BAR_S = [1, 2, 5, 10, 15, 30, 60];

/** One kind of count over the run, as bars. */
export interface Band {
  readonly name: string;
  readonly total: number;
  /** The highest bar, per second. */
  readonly peak: number;
  /** The upper end of the axis, per second. */
  readonly top: number;
  /** Per second, in each part of the run. */
  readonly bars: readonly number[];
}

/** The orders, events and messages over a run. */
export interface RunBands {
  /** The time that a bar stands for, seconds. */
  readonly barS: number;
  /** The time that all bars stand for, milliseconds. */
  readonly spanMs: number;
  readonly bands: readonly Band[];
}

/** Draws the seconds of a run as bars: those of a long run stand for several seconds each. */
export function bandsOf({ placed, published, processed }: DemoReceipt['perSecond']): RunBands {
  const barS = BAR_S.find((size) => placed.length / size <= BARS_MAX) ?? Math.ceil(placed.length / BARS_MAX);
  const bandOf = (name: string, counts: readonly number[]): Band => {
    const bars = Array.from({ length: Math.ceil(counts.length / barS) }, (_, bar) => {
      return sumOf(counts.slice(bar * barS, (bar + 1) * barS)) / barS;
    });
    const peak = Math.max(0, ...bars);
    return { name, total: sumOf(counts), peak, top: roundedUp(peak), bars };
  };
  const bands = [
    bandOf('Orders placed', placed),
    bandOf('Events published', published),
    bandOf('Messages processed', processed),
  ];
  return { barS, spanMs: (bands[0]?.bars.length ?? 0) * barS * 1_000, bands };
}

/** The ends of an axis, in powers of ten. */
const TOPS = [1, 1.5, 2, 3, 4, 5, 6, 8, 10];

/** The next number that is easy to read, at least 1. */
function roundedUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return (TOPS.find((top) => top * power >= value) ?? 10) * power;
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, n) => sum + n, 0);
}
