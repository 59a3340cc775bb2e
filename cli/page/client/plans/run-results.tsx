import type { Run } from '../../server/protocol.ts';
import { Command } from '../frame/command.tsx';
import { EventLink } from '../frame/event-link.tsx';
import { count, many } from '../frame/format.ts';
import { Notice } from '../frame/notice.tsx';
import { State } from '../frame/state.tsx';
import { Stored } from '../frame/stored.tsx';
import { type Column, Table } from '../frame/table.tsx';
import { errorOf } from '../frame/use-reading.ts';
import { nextOf, outcomeCounts, outcomeWords, type RunResult, resultsOf } from './outcomes.ts';

/** The outcome of a run: by outcome, what comes next, and on request each dead letter. */
export function RunResults({ run }: { readonly run: Run }) {
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
