import type { StateName } from './format.ts';

interface AttemptsProps {
  readonly is: StateName;
  /** The attempts that were started; `null` if that is unknown. */
  readonly attempt: number | null;
  readonly max: number;
}

/** More attempts than this are a number only. */
const SEGMENTS_MAX = 20;

const SEGMENT = { width: 8, gap: 2 };

/** The attempts at a message as a bar with a segment for each, e.g. of five, and in words. */
export function Attempts({ is, attempt, max }: AttemptsProps) {
  if (attempt !== null && attempt > max) return <span>{attempt}</span>;
  const step = SEGMENT.width + SEGMENT.gap;
  return (
    <span class={`attempts is-${is}`}>
      {max <= SEGMENTS_MAX && (
        <svg width={max * step - SEGMENT.gap} height="8" aria-hidden="true">
          {Array.from({ length: max }, (_, index) => (
            <rect
              key={index}
              class={index < (attempt ?? 0) ? 'is-tried' : undefined}
              x={index * step}
              width={SEGMENT.width}
              height="8"
              rx="2"
            />
          ))}
        </svg>
      )}
      {attempt ?? '?'} of {max}
    </span>
  );
}
