import type { ComponentChildren } from 'preact';
import { useEffect, useErrorBoundary, useRef } from 'preact/hooks';
import { Refused } from './notice.tsx';
import { refused } from './use-reading.ts';

interface GuardedProps {
  readonly title: string;
  /** Another place of the same screen is tried again. */
  readonly place: string;
  readonly children: ComponentChildren;
}

/** Keeps the frame when a screen fails, and shows the error in the screen's place. */
export function Guarded({ title, place, children }: GuardedProps) {
  const [error, reset] = useErrorBoundary();
  const failedAt = useRef(place);
  useEffect(() => {
    if (failedAt.current !== place) reset();
    failedAt.current = place;
  }, [place, reset]);
  if (error === undefined) return <>{children}</>;
  return (
    <>
      <h1>{title}</h1>
      <Refused error={refused(error)} />
      <p>This screen could not display the result. Run its command in a terminal instead.</p>
      <p>
        <button type="button" onClick={reset}>
          Try again
        </button>
      </p>
    </>
  );
}
