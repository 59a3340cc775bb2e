import { rate } from '../frame/format.ts';

const WIDTH = 90;
const HEIGHT = 24;

/** The end of a rate over the last minute, as bars; nothing if every rate is 0. @param label - names it, e.g. `Committed per second` */
export function Sparkline({ values, label }: { readonly values: readonly number[]; readonly label: string }) {
  const peak = Math.max(...values, 0);
  if (peak === 0) return null;
  const step = WIDTH / Math.max(values.length, 1);
  return (
    <svg
      class="spark"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      width={WIDTH}
      height={HEIGHT}
      role="img"
      aria-label={`${label}: now ${rate(values.at(-1) ?? 0)}, at most ${rate(peak)} in the last minute`}
    >
      <path class="spark-ground" d={`M0 ${HEIGHT - 0.5}H${WIDTH}`} />
      {values.map((value, index) => {
        const height = (value / peak) * (HEIGHT - 2);
        return value === 0 ? null : (
          <rect key={index} x={index * step + 0.5} y={HEIGHT - 1 - height} width={step - 1} height={height} />
        );
      })}
    </svg>
  );
}
