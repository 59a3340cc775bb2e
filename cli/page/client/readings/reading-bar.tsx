import type { ComponentChildren } from 'preact';
import { duration } from '../../../terminal/times.ts';
import type { Reading } from '../../server/readings.ts';
import type { RefusedError } from '../frame/api.ts';
import { Command } from '../frame/command.tsx';
import { useNow } from '../frame/mailroom.ts';
import { Refused } from '../frame/notice.tsx';
import { State } from '../frame/state.tsx';
import { Stored } from '../frame/stored.tsx';
import { Ago } from '../frame/times.tsx';

/** A result older than this is marked as old: others may have changed what it shows. */
const OLD_MS = 300_000;

/** The state of a reading, as `useReading` returns it. */
export interface ReadingBarProps {
  readonly reading: Pick<Reading, 'at' | 'command' | 'notes'> | null;
  readonly error: RefusedError | null;
  readonly isReading: boolean;
  /** The work while it is read, e.g. `Checking`. */
  readonly verb: string;
  /** The controls that start it. */
  readonly children: ComponentChildren;
}

/** The controls of a reading, its age, why the last one failed, and the command that does the same. */
export function ReadingBar({ reading, error, isReading, verb, children }: ReadingBarProps) {
  return (
    <>
      <div class="reading-bar">
        {children}
        <p role="status" class="reading-state">
          {isReading ? (
            <State is="busy">{verb}</State>
          ) : (
            reading !== null && error === null && <span class="unseen">Done</span>
          )}
        </p>
        {reading !== null && !isReading && <Age at={reading.at} />}
        {reading !== null && (
          <details class="same-command">
            <summary>In a terminal</summary>
            <Command line={reading.command} />
          </details>
        )}
      </div>
      {error !== null && <Refused error={error} />}
      {reading?.notes.map((note) => (
        <p key={note} class="quiet-text">
          <Stored text={note} />
        </p>
      ))}
    </>
  );
}

function Age({ at }: { readonly at: number }) {
  const isOld = useNow() - at > OLD_MS;
  const age = (
    <>
      Read <Ago at={at} />
    </>
  );
  return <p class="reading-age">{isOld ? <State is="look">{age}</State> : age}</p>;
}

/** A future time as a clock that counts down, and `due` from then on: nothing is lost when it passes. */
export function Due({ at }: { readonly at: number }) {
  const now = useNow();
  return (
    <span class="clock">{at <= now ? 'due' : `in ${duration(Math.ceil((at - now) / 1_000) * 1_000)}`}</span>
  );
}

/** The name of a consumer in a table: not broken while the window is wide. */
export function Name({ text }: { readonly text: string }) {
  return (
    <span class="name">
      <Stored text={text} />
    </span>
  );
}
