import { useEffect, useRef, useState } from 'preact/hooks';
import type { Run } from '../../server/protocol.ts';
import type { RefusedError } from '../frame/api.ts';
import { errorOf, refused } from '../frame/api.ts';
import { Button, Command } from '../frame/controls.tsx';
import { count, many, type StateName } from '../frame/format.ts';
import { useMailroom } from '../frame/mailroom.ts';
import { focusMain, hasFocus } from '../frame/route.ts';
import { Icon, Notice, Refused, State } from '../frame/state.tsx';
import { EventLink, Stored } from '../frame/stored.tsx';
import { type Column, Table } from '../frame/table.tsx';
import { Ago } from '../frame/times.tsx';
import {
  followRun,
  isFollowed,
  NO_PROGRESS,
  nextOf,
  outcomeCounts,
  outcomeWords,
  progressed,
  type RunProgress,
  type RunResult,
  resultsOf,
  takesFocus,
} from './runs.ts';

const dismissed = new Set<string>();

/** The changes that are being made, on every screen; and their outcomes until they are dismissed. */
export function RunPanel() {
  const { runs } = useMailroom();
  const [, setDismissed] = useState(0);
  for (const { id, state } of runs) if (state === 'running') followRun(id);
  const shown = runs.filter(({ id }) => isFollowed(id) && !dismissed.has(id));
  const dismiss = (id: string) => {
    dismissed.add(id);
    setDismissed(dismissed.size);
    focusMain();
  };
  return (
    <>
      <p role="status" class="unseen">
        {shown.slice(0, 1).map(titleOf)}
      </p>
      {shown.map((run) => (
        <RunView key={run.id} run={run} onDismiss={() => dismiss(run.id)} />
      ))}
    </>
  );
}

const KINDS: Readonly<Record<Run['kind'], string>> = {
  redrive: 'Redrive',
  discard: 'Discard',
  resend: 'Resend',
  repair: 'Repair',
};

const STATES: Readonly<Record<Run['state'], readonly [StateName, string]>> = {
  running: ['busy', 'running'],
  done: ['ok', 'done'],
  stopped: ['look', 'stopped'],
  failed: ['broken', 'failed'],
};

/** A command that ends with 1 did not do everything. */
function stateOf({ state, exitCode }: Run): readonly [StateName, string] {
  return state === 'done' && exitCode === 1 ? ['look', 'done, action required'] : STATES[state];
}

function titleOf(run: Run): string {
  return `${KINDS[run.kind]}, ${stateOf(run)[1]}`;
}

function RunView({ run, onDismiss }: { readonly run: Run; readonly onDismiss: () => void }) {
  const [is, word] = stateOf(run);
  const isRunning = run.state === 'running';
  const section = useRef<HTMLElement>(null);
  const hadFocus = section.current?.contains(document.activeElement) ?? false;
  useEffect(() => {
    // A run is shown above the screen that started it, and its Stop button goes when it ends.
    if (takesFocus(run.id) || (hadFocus && !hasFocus())) section.current?.focus();
  }, [run.id, run.state]);
  return (
    <section ref={section} tabIndex={-1} class={`panel run stack is-${is}`} aria-label={titleOf(run)}>
      <div class="panel-head">
        <h2>
          {KINDS[run.kind]} <State is={is}>{word}</State>
        </h2>
        <span class="row">
          <span class="quiet-text">
            started <Ago at={run.startedAt} />
          </span>
          {isRunning ? (
            <Stop id={run.id} />
          ) : (
            <button type="button" class="quiet" onClick={onDismiss}>
              <Icon name="close" />
              Dismiss
            </button>
          )}
        </span>
      </div>
      {isRunning ? <Running run={run} /> : <RunResults run={run} />}
      <details class="same-command">
        <summary>In a terminal</summary>
        <Command line={run.command} />
      </details>
    </section>
  );
}

function Running({ run: { kind, progress } }: { readonly run: Run }) {
  const [{ step, steps, done, of }, setProgress] = useState<RunProgress>(NO_PROGRESS);
  useEffect(() => setProgress((before) => progressed(before, progress)), [progress]);
  return (
    <>
      {kind === 'redrive' && <Steps step={step} steps={steps} />}
      {of !== null && done !== null && (
        <div class="row">
          <progress value={done} max={of} aria-label="Done" />
          <span>
            {count(done)} of {count(of)} done
          </span>
        </div>
      )}
      <p class="quiet-text">
        <Stored text={progress === '' ? 'Starting' : progress} />
      </p>
    </>
  );
}

/** One dead letter costs little if the cause persists: so 1 is sent first, then 10, then the rest. */
function Steps({ step, steps }: Pick<RunProgress, 'step' | 'steps'>) {
  const labels = ['1', '10', 'the rest'].slice(0, steps ?? 3);
  return (
    <ol class="steps" aria-label="Steps">
      {labels.map((label, index) => {
        const at = step === null ? 'idle' : index + 1 < step ? 'ok' : index + 1 === step ? 'busy' : 'idle';
        return (
          <li key={label} aria-current={at === 'busy' ? 'step' : undefined}>
            <State is={at}>{label}</State>
          </li>
        );
      })}
    </ol>
  );
}

function Stop({ id }: { readonly id: string }) {
  const { api, keep } = useMailroom();
  const [isStopping, setStopping] = useState(false);
  const [error, setError] = useState<RefusedError | null>(null);
  const stop = async (): Promise<void> => {
    setStopping(true);
    try {
      keep({ run: await api.stop(id) });
    } catch (failure) {
      setStopping(false);
      setError(refused(failure));
    }
  };
  return (
    <>
      <Button class="danger" isDisabled={isStopping} onClick={stop}>
        {isStopping ? 'Stopping' : 'Stop'}
      </Button>
      {error !== null && <Refused error={error} />}
    </>
  );
}

/** The outcome of a run: by outcome, what comes next, and on request each dead letter. */
function RunResults({ run }: { readonly run: Run }) {
  const error = errorOf(run);
  const results = resultsOf(run.document);
  const next = nextOf(run.document);
  return (
    <>
      {error !== null && <Notice is="broken" title={<Stored text={error.message} />} />}
      {run.notes.map((note) => (
        <p key={note} class="quiet-text">
          <Stored text={note} />
        </p>
      ))}
      {results.length > 0 && (
        <>
          <ul class="outcomes">
            {outcomeCounts(results).map(([outcome, number]) => {
              const { is, label, todo } = outcomeWords(outcome);
              return (
                <li key={outcome}>
                  <State is={is}>
                    {count(number)} {label}
                  </State>
                  <span>{todo}</span>
                </li>
              );
            })}
          </ul>
          <FailedAgain results={results} />
          <details>
            <summary>Each of {many(results.length, 'result')}</summary>
            <Table
              caption="Results"
              columns={COLUMNS}
              rows={results}
              keyOf={({ id }) => id}
              empty="Nothing was changed."
            />
          </details>
        </>
      )}
      {next !== null && (
        <div class="row">
          Next: <Command line={next} />
        </div>
      )}
      {results.length === 0 && error === null && <p>Nothing was changed.</p>}
    </>
  );
}

/** The error that stopped a redrive, with its event. */
function FailedAgain({ results }: { readonly results: readonly RunResult[] }) {
  const first = results.find(({ outcome }) => outcome === 'failed-again');
  if (first === undefined) return null;
  return (
    <p>
      <EventLink id={first.eventId ?? first.id} /> failed again:{' '}
      <Stored text={first.detail ?? 'unknown cause'} />
    </p>
  );
}

const COLUMNS: readonly Column<RunResult>[] = [
  {
    title: 'Event',
    cell: ({ id, eventId }) => (eventId === null ? <Stored text={id} /> : <EventLink id={eventId} />),
  },
  {
    title: 'Outcome',
    cell: ({ outcome }) => {
      const { is, label } = outcomeWords(outcome);
      return <State is={is}>{label}</State>;
    },
  },
  { title: 'Detail', cell: ({ detail }) => <Stored text={detail ?? ''} clip={300} /> },
];
