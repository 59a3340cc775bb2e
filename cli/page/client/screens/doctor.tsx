import { findingCounts, NO_PROBLEM, problemState } from '../../../reports/findings/finding-counts.ts';
import type { ReadingDocuments } from '../../server/readings.ts';
import { Button } from '../frame/controls.tsx';
import { Finding } from '../frame/finding.tsx';
import { capitalized, many } from '../frame/format.ts';
import { ReadingBar, useKeptReading } from '../frame/reading.tsx';
import { State } from '../frame/state.tsx';
import { Stored } from '../frame/stored.tsx';

/** The checks of `mailroom doctor`: run on a click, because they are a few hundred calls. */
export function DoctorScreen() {
  const used = useKeptReading('doctor');
  const { reading, isReading, read } = used;
  return (
    <>
      <div>
        <h1>Doctor</h1>
        <p class="quiet-text">Compares the deployed resources with their declaration. Changes nothing.</p>
      </div>
      <ReadingBar
        used={used}
        verb="Checking"
        what="tables, streams, functions, rules, queues, roles and alarms: up to a minute"
      >
        <Button
          class={reading === null ? 'primary' : undefined}
          isDisabled={isReading}
          onClick={() => read({})}
        >
          {reading === null ? 'Run the checks' : 'Run the checks again'}
        </Button>
      </ReadingBar>
      {reading === null && !isReading && <Parts />}
      {reading?.document && <Result document={reading.document} />}
    </>
  );
}

/** The parts that are checked, before they are. */
function Parts() {
  return (
    <section class="panel stack" aria-labelledby="parts-title">
      <h2 id="parts-title">Not checked yet</h2>
      <ul class="plain-list">
        <li>Table, stream, relay and sweep: they run, at this version, with the declared settings.</li>
        <li>Bus, rules and queues: each consumer receives exactly its events.</li>
        <li>Functions and mappings: enabled, with enough time, concurrency and retries.</li>
        <li>Dead-letter queues, roles, alarms and clocks.</li>
      </ul>
      <p class="quiet-text">A few hundred calls, up to a minute.</p>
    </section>
  );
}

function Result({ document }: { readonly document: ReadingDocuments['doctor'] }) {
  const { checks, compared, problems, allowed, notCompared, notChecked, skipped } = document;
  const [first = { is: 'ok', text: capitalized(NO_PROBLEM) } as const, ...others] = findingCounts(
    [
      ...problems.map(({ problem }) => ({ state: problemState(problem) })),
      ...notChecked.map(() => ({ state: 'look' as const })),
    ],
    document,
  );
  const counts = [first, ...others].map(({ text }) => text).join(', ');
  const found = `${counts}: ${many(compared.resources, 'resource')} compared member by member, ${many(checks, 'relation')} checked`;
  const types = notCompared.filter(({ member }) => member === undefined).map(({ type }) => type);
  return (
    <section class="findings" aria-labelledby="checks-title">
      <h2 id="checks-title">
        <State is={first.is}>{found}</State>
      </h2>
      {problems.length + notChecked.length > 0 && (
        <div class="panel">
          <ul class="lines">
            {problems.map(({ part, problem, text, commands }) => (
              <Finding
                key={`${part} ${problem} ${text}`}
                is={problemState(problem)}
                text={text}
                commands={commands}
              />
            ))}
            {notChecked.map(({ needs, parts, why }) => (
              <Finding
                key={parts.join()}
                is="look"
                text={`Not checked: ${parts.join(', ')}`}
                commands={[]}
                note={why ?? `needs ${needs.join(' and ')}`}
              />
            ))}
          </ul>
        </div>
      )}
      {allowed.map(({ text }) => (
        <p key={text} class="quiet-text">
          Changed, as a person may: <Stored text={text} />
        </p>
      ))}
      {types.length > 0 && (
        <p class="quiet-text">
          Not compared: <Stored text={types.join(', ')} />
        </p>
      )}
      {skipped.map((text) => (
        <p key={text} class="quiet-text">
          Skipped: <Stored text={text} />
        </p>
      ))}
    </section>
  );
}
