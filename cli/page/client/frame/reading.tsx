import type { ComponentChildren } from 'preact';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { duration } from '../../../terminal/times.ts';
import type { Reading, ReadingName, ReadingParameters } from '../../server/readings.ts';
import { errorOf, type RefusedError, refused } from './api.ts';
import { Command } from './controls.tsx';
import { useMailroom, useNow } from './mailroom.ts';
import { Refused, State } from './state.tsx';
import { Stored } from './stored.tsx';
import { Ago } from './times.tsx';

/** The state of a reading command. */
export interface UsedReading<Name extends ReadingName> {
  /** The last result; kept while the next one is read. */
  readonly reading: Reading<Name> | null;
  /** Why the last request failed; `null` after a success. */
  readonly error: RefusedError | null;
  readonly isReading: boolean;
  /** Reads; a reading that is under way is dropped. */
  readonly read: (parameters: ReadingParameters[Name]) => void;
}

/**
 * A reading command for a screen: nothing is read before `read` is called.
 *
 * @example
 * ```tsx
 * const { reading, error, isReading, read } = useReading('doctor');
 * ```
 */
export function useReading<Name extends ReadingName>(name: Name): UsedReading<Name> {
  const { api } = useMailroom();
  const [state, setState] = useState<Omit<UsedReading<Name>, 'read'>>({
    reading: null,
    error: null,
    isReading: false,
  });
  const current = useRef<AbortController | undefined>(undefined);
  const read = useCallback(
    (parameters: ReadingParameters[Name]) => {
      current.current?.abort();
      const controller = new AbortController();
      current.current = controller;
      const settle = (result: Partial<UsedReading<Name>>) => {
        if (!controller.signal.aborted) setState((before) => ({ ...before, ...result, isReading: false }));
      };
      setState((before) => ({ ...before, isReading: true }));
      api.read(name, parameters, controller.signal).then(
        (reading) => settle({ reading, error: errorOf(reading) }),
        (error) => settle({ error: refused(error) }),
      );
    },
    [api, name],
  );
  useEffect(() => () => current.current?.abort(), []);
  return { ...state, read };
}

/** The last good reading of each name: a screen that is opened again shows it with its age instead of nothing. */
const kept = new Map<ReadingName, Reading>();

/**
 * A reading command whose last result outlives its screen, and stays while a later one fails.
 *
 * @example
 * ```ts
 * const { reading, error, isReading, read } = useKeptReading('doctor');
 * ```
 */
export function useKeptReading<Name extends ReadingName>(name: Name): UsedReading<Name> {
  const used = useReading(name);
  if (used.reading !== null && used.reading.error === null) kept.set(name, used.reading);
  return { ...used, reading: (kept.get(name) as Reading<Name> | undefined) ?? null };
}

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
