import { useEffect, useRef, useState } from 'preact/hooks';
import type { Run } from '../../server/protocol.ts';
import { Ago } from '../frame/clocks.tsx';
import { Button, Command, SameCommand } from '../frame/controls.tsx';
import { count, many, type StateName } from '../frame/format.ts';
import { useMailroom, useTask } from '../frame/mailroom.ts';
import { focusMain, hasFocus } from '../frame/route.ts';
import { Icon, Notes, Notice, Refused, State } from '../frame/state.tsx';
import { EventLink, Stored } from '../frame/stored.tsx';
import { type Column, Table } from '../frame/table.tsx';
import {
  type CauseResult,
  causesOf,
  nextOf,
  outcomeCounts,
  type RunResult,
  resultsOf,
  shownOutcome,
  sourceOf,
} from './runs.ts';

/** The runs that are shown until they are dismissed: those that this tab started or saw going on. The operations log has the others. */
const followed = new Set<string>();

/** The runs that this tab has started, and that have not been shown yet: each receives the focus then. */
const started = new Set<string>();

/** Shows a run that this tab has started. */
export function followStarted({ id }: Run): void {
  followed.add(id);
  started.add(id);
}

/** The changes that are being made, on every screen; and their outcomes until they are dismissed. */
export function RunPanel() {
  const { runs } = useMailroom();
  const [dismissed, setDismissed] = useState<readonly string[]>([]);
  for (const { id, state } of runs) if (state === 'running') followed.add(id);
  const shown = runs.filter(({ id }) => followed.has(id) && !dismissed.includes(id));
  const dismiss = (id: string) => {
    setDismissed([...dismissed, id]);
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

interface RunProps {
  readonly run: Run;
}

function RunView({ run, onDismiss }: RunProps & { readonly onDismiss: () => void }) {
  const [is, word] = stateOf(run);
  const isRunning = run.state === 'running';
  const section = useRef<HTMLElement>(null);
  const hadFocus = section.current?.contains(document.activeElement) ?? false;
  useEffect(() => {
    // A run is shown above the screen that started it, and its Stop button goes when it ends.
    if (started.delete(run.id) || (hadFocus && !hasFocus())) section.current?.focus();
  }, [run.id, run.state]);
  return (
    <section ref={section} tabIndex={-1} class="panel run stack" aria-label={titleOf(run)}>
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
      {isRunning ? <Running run={run} /> : <Results run={run} />}
      <SameCommand line={run.command} />
    </section>
  );
}

function Stop({ id }: { readonly id: string }) {
  const { keep } = useMailroom();
  const { result, error, isBusy, start } = useTask(async (api) => {
    keep(await api.stop(id));
    return true;
  });
  const isStopping = isBusy || result === true;
  return (
    <>
      <Button isDisabled={isStopping} onClick={() => start(undefined)}>
        {isStopping ? 'Stopping' : 'Stop'}
      </Button>
      <Refused error={isStopping ? null : error} />
    </>
  );
}

function Running({ run: { kind, progress, reached } }: RunProps) {
  const { step, steps, done, of } = reached;
  return (
    <>
      {kind === 'redrive' && <Steps step={step ?? 0} steps={steps ?? 3} />}
      {of !== undefined && done !== undefined && (
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

/** One dead letter costs little if its cause persists: so of each cause 1 is sent first, then 10, then the rest. */
function Steps({ step, steps }: { readonly step: number; readonly steps: number }) {
  return (
    <ol class="steps" aria-label="Steps">
      {['1 of each cause', '10 of each', 'the rest'].slice(0, steps).map((label, index) => {
        const at = index + 1 < step ? 'ok' : index + 1 === step ? 'busy' : 'idle';
        return (
          <li key={label} aria-current={at === 'busy' ? 'step' : undefined}>
            <State is={at}>{label}</State>
          </li>
        );
      })}
    </ol>
  );
}

/** The outcome of a run: by outcome, what comes next, and on request each dead letter. */
function Results({ run: { document, error, notes } }: RunProps) {
  const results = resultsOf(document);
  const next = nextOf(document);
  const causes = causesOf(document);
  return (
    <>
      {error !== null && <Notice is="broken" title={<Stored text={error.message} />} />}
      <Notes notes={notes} />
      {results.length > 0 && (
        <>
          <ul class="outcomes">
            {outcomeCounts(results).map(([outcome, number]) => {
              const { is, label, todo } = shownOutcome(outcome, sourceOf(document));
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
          {causes.length > 0 && (
            <Table
              caption="By cause"
              columns={causeColumns(sourceOf(document))}
              rows={causes}
              keyOf={(cause) => JSON.stringify(cause)}
              empty="Nothing was changed."
            />
          )}
          <details>
            <summary>Each of {many(results.length, 'result')}</summary>
            <Table
              caption="Results"
              columns={columnsOf(sourceOf(document))}
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

function causeColumns(source: string): readonly Column<CauseResult>[] {
  return [
    { title: 'Count', cell: ({ count: number }) => count(number), isNumber: true },
    {
      title: 'Outcome',
      cell: ({ outcome }) => {
        const { is, label } = shownOutcome(outcome, source);
        return <State is={is}>{label}</State>;
      },
    },
    { title: 'Cause', cell: ({ cause }) => <Stored text={cause} clip={300} /> },
    { title: 'Now', cell: ({ now }) => <Stored text={now} clip={300} /> },
    { title: 'Example', cell: ({ example }) => <EventLink id={example} /> },
  ];
}

function columnsOf(source: string): readonly Column<RunResult>[] {
  return [
    {
      title: 'Event',
      cell: ({ id, eventId }) => (eventId === null ? <Stored text={id} /> : <EventLink id={eventId} />),
    },
    {
      title: 'Outcome',
      cell: ({ outcome }) => {
        const { is, label } = shownOutcome(outcome, source);
        return <State is={is}>{label}</State>;
      },
    },
    { title: 'Detail', cell: ({ detail }) => <Stored text={detail ?? ''} clip={300} /> },
  ];
}
