import { findingCounts, NO_PROBLEM, problemState } from '../../../reports/findings/finding-counts.ts';
import type { ReadingDocuments } from '../../server/readings.ts';
import { Button } from '../frame/controls.tsx';
import { Finding } from '../frame/finding.tsx';
import { capitalized, many } from '../frame/format.ts';
import { ReadingHead, useKeptReading } from '../frame/reading.tsx';
import { State } from '../frame/state.tsx';
import { Stored } from '../frame/stored.tsx';

/** The checks of `mailroom doctor`: run on a click, because they are a few hundred calls. */
export function DoctorScreen() {
  const used = useKeptReading('doctor');
  const { reading, isReading, read } = used;
  return (
    <>
      <ReadingHead
        used={used}
        title="Doctor"
        about="Not checked yet: compares the deployed resources with their declaration, and changes nothing."
        answer={reading?.document && <Answer document={reading.document} />}
        isShort
        verb="Checking"
        what="tables, streams, functions, rules, queues, roles and alarms: up to a minute"
      >
        <Button
          class={reading === null ? 'primary' : undefined}
          isDisabled={isReading}
          onClick={() => read({})}
        >
          {reading === null ? 'Run the checks' : 'Run again'}
        </Button>
      </ReadingHead>
      {reading === null && !isReading && <Parts />}
      {reading?.document && <Result document={reading.document} />}
    </>
  );
}

/** The parts that are checked, before they are. */
function Parts() {
  return (
    <section class="panel stack" aria-labelledby="parts-title">
      <h2 id="parts-title">What is checked</h2>
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

interface DoctorProps {
  readonly document: ReadingDocuments['doctor'];
}

/** The problems, warnings and parts that were not checked, counted. */
function Answer({ document }: DoctorProps) {
  const { problems, notChecked } = document;
  const counts = findingCounts(
    [
      ...problems.map((problem) => ({ state: problemState(problem) })),
      ...notChecked.map(() => ({ state: 'look' as const })),
    ],
    document,
  );
  const [worst] = counts;
  if (worst === undefined) return <State is="ok">{capitalized(NO_PROBLEM)}</State>;
  return <State is={worst.is}>{counts.map(({ text }) => text).join(', ')}</State>;
}

function Result({ document }: DoctorProps) {
  const { checks, compared, problems, allowed, notCompared, notChecked, skipped } = document;
  const types = notCompared.filter(({ member }) => member === undefined).map(({ type }) => type);
  return (
    <section class="findings" aria-label="Result">
      {problems.length + notChecked.length > 0 && (
        <div class="panel">
          <ul class="lines">
            {problems.map((problem) => (
              <Finding
                key={`${problem.part} ${problem.problem} ${problem.text}`}
                is={problemState(problem)}
                text={problem.text}
                commands={problem.commands}
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
      <p class="quiet-text">
        {many(compared.resources, 'resource')} compared member by member, {many(checks, 'relation')} checked
      </p>
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
