import { useEffect, useState } from 'preact/hooks';
import { State } from './state.tsx';

/** Work that takes longer than this names what it checks. */
const SLOW_MS = 10_000;

/** True while work is under way that has taken long. */
export function useSlow(isBusy: boolean): boolean {
  const [isSlow, setSlow] = useState(false);
  useEffect(() => {
    if (!isBusy) return;
    const timer = setTimeout(() => setSlow(true), SLOW_MS);
    return () => {
      clearTimeout(timer);
      setSlow(false);
    };
  }, [isBusy]);
  return isSlow;
}

interface BusyProps {
  /** The parts that are read, e.g. `the outbox and every queue`. */
  readonly what: string;
  /** @default 'Reading' */
  readonly verb?: string;
}

/** Work under way: a word, and what is checked if it takes long. */
export function Busy({ what, verb = 'Reading' }: BusyProps) {
  return <State is="busy">{useSlow(true) ? `Checking… ${what}` : verb}</State>;
}

/** The place of a result that is read for the first time. The control that reads it announces it. */
export function Placeholder() {
  return (
    <div class="panel placeholder" aria-hidden="true">
      <span />
      <span />
      <span />
    </div>
  );
}
