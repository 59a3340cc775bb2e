import type { ComponentChildren } from 'preact';
import type { Reading, ReadingName, ReadingParameters } from '../../server/readings.ts';
import { errorOf, type RefusedError } from './api.ts';
import { Busy, Placeholder } from './busy.tsx';
import { Ago } from './clocks.tsx';
import { SameCommand } from './controls.tsx';
import { useNow, useTask } from './mailroom.ts';
import { Notes, Refused, State } from './state.tsx';

/** A reading command for a screen. */
export function useReading<Name extends ReadingName>(name: Name) {
  const { result, error, isBusy, start } = useTask(
    (api, parameters: ReadingParameters[Name], signal): Promise<Reading<Name>> =>
      api.read(name, parameters, signal),
  );
  const refusal = error ?? (result === null ? null : errorOf(result));
  return { reading: result, error: refusal, isReading: isBusy, read: start };
}

/** The last good reading of each name: a screen that is opened again shows it with its age instead of nothing. */
const kept = new Map<ReadingName, Reading>();

/** A reading command whose last result outlives its screen, and stays while a later one fails. */
export function useKeptReading<Name extends ReadingName>(name: Name): ReturnType<typeof useReading<Name>> {
  const used = useReading(name);
  if (used.reading !== null && used.reading.error === null) kept.set(name, used.reading);
  return { ...used, reading: (kept.get(name) as Reading<Name> | undefined) ?? null };
}

/** A result older than this is marked as old: others may have changed what it shows. */
const OLD_MS = 300_000;

interface ReadingBarProps {
  readonly used: {
    readonly reading: Pick<Reading, 'at' | 'command' | 'notes'> | null;
    readonly error: RefusedError | null;
    readonly isReading: boolean;
  };
  /** The work while it is read. @default 'Reading' */
  readonly verb?: string;
  /** Shown if it takes long: the parts that are read, e.g. `the operations log`. */
  readonly what: string;
  /** The controls that start it. */
  readonly children: ComponentChildren;
}

/** The controls of a reading, its age, why the last one failed, and the command that does the same. */
export function ReadingBar({ children, ...props }: ReadingBarProps) {
  return (
    <>
      <div class="row">
        {children}
        <Work {...props} />
        <Origin {...props} />
      </div>
      <Below {...props} />
    </>
  );
}

interface ReadingHeadProps extends ReadingBarProps {
  readonly title: string;
  /** The question of the screen, before its first answer. */
  readonly about: string;
  /** The answer in one line; `undefined` before the first reading. */
  readonly answer: ComponentChildren | undefined;
  /** The controls fit beside the title in a narrow window. @default false */
  readonly isShort?: boolean;
}

/** The beginning of a screen that reads once: its title, the answer or the question, and the controls, in the first 200 pixels. */
export function ReadingHead({ title, about, answer, isShort = false, children, ...props }: ReadingHeadProps) {
  return (
    <>
      <div class={`reading-head ${isShort ? 'is-short' : ''}`}>
        <h1>{title}</h1>
        <div class="row answer">
          {answer ?? (!props.used.isReading && <p class="quiet-text">{about}</p>)}
          <Work {...props} />
        </div>
        <div class="row controls">{children}</div>
        <div class="row origin">
          <Origin {...props} />
        </div>
      </div>
      <Below {...props} />
    </>
  );
}

type ShownReading = Omit<ReadingBarProps, 'children'>;

/** The work under way, or its end, for screen readers. */
function Work({ used: { reading, error, isReading }, verb, what }: ShownReading) {
  return (
    <p role="status" class="reading-state">
      {isReading ? (
        <Busy what={what} {...(verb !== undefined && { verb })} />
      ) : (
        reading !== null && error === null && <span class="unseen">Done</span>
      )}
    </p>
  );
}

/** The age of a reading, and its command. */
function Origin({ used: { reading, isReading } }: ShownReading) {
  if (reading === null) return null;
  return (
    <>
      {!isReading && <Age at={reading.at} />}
      <SameCommand line={reading.command} />
    </>
  );
}

/** Why the last reading failed, what its command noted, and the place of the first result. */
function Below({ used: { reading, error, isReading } }: ShownReading) {
  return (
    <>
      <Refused error={error} />
      <Notes notes={reading?.notes ?? []} />
      {isReading && reading === null && <Placeholder />}
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
