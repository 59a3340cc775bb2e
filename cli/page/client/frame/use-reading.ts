import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { Refusal } from '../../server/quiet-run.ts';
import type { Reading, ReadingName, ReadingParameters } from '../../server/readings.ts';
import { RefusedError } from './api.ts';
import { useMailroom } from './mailroom.ts';

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

/** An error as a {@link RefusedError}. */
export function refused(error: unknown): RefusedError {
  if (error instanceof RefusedError) return error;
  return new RefusedError({ code: 'PAGE', message: error instanceof Error ? error.message : String(error) });
}

/** The error of a command that failed or was refused. */
export function errorOf({ error }: { readonly error: Refusal | null }): RefusedError | null {
  return error === null ? null : new RefusedError(error);
}
