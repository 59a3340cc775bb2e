import type { ReadingDocuments } from '../../server/readings.ts';
import { Button, Command } from '../frame/controls.tsx';
import { many } from '../frame/format.ts';
import { ReadingBar, useKeptReading } from '../frame/reading.tsx';
import { Notice } from '../frame/state.tsx';
import { Stored } from '../frame/stored.tsx';

/** The checks of `mailroom doctor`: run on a click, because they are a few hundred calls. */
export function DoctorScreen() {
  const { reading, error, isReading, read } = useKeptReading('doctor');
  return (
    <>
      <div class="panel-head">
        <h1>Doctor</h1>
        <p class="quiet-text">Compares the deployed resources with their declaration. Changes nothing.</p>
      </div>
      <section class="panel stack">
        <ReadingBar reading={reading} error={error} isReading={isReading} verb="Checking: up to a minute">
          <Button isDisabled={isReading} onClick={() => read({})}>
            {reading === null ? 'Run the checks' : 'Run the checks again'}
          </Button>
        </ReadingBar>
        {reading === null && !isReading && <p class="empty">Not run yet.</p>}
        {reading?.document && <Result document={reading.document} />}
      </section>
    </>
  );
}

function Result({
  document: { ok, checks, problems, notChecked, skipped },
}: {
  readonly document: ReadingDocuments['doctor'];
}) {
  return (
    <>
      <Notice
        is={problems.length > 0 ? 'broken' : ok ? 'ok' : 'look'}
        title={verdictOf(problems.length, ok, checks)}
      />
      {problems.length > 0 && (
        <section class="stack" aria-label="Problems">
          {problems.map(({ part, problem, text, commands }) => (
            <Notice key={`${part} ${problem} ${text}`} is="broken" title={<Stored text={text} />}>
              {commands.map((line) => (
                <Command key={line} line={line} />
              ))}
            </Notice>
          ))}
        </section>
      )}
      {notChecked.map(({ needs, parts }) => (
        <Notice
          key={parts.join()}
          is="look"
          title={
            <>
              Not checked: <Stored text={parts.join(', ')} />
            </>
          }
        >
          <p>
            It needs <Stored text={needs.join(' and ')} />.
          </p>
        </Notice>
      ))}
      {skipped.length > 0 && (
        <ul class="quiet-text">
          {skipped.map((text) => (
            <li key={text}>
              Skipped: <Stored text={text} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function verdictOf(problems: number, isOk: boolean, checks: number): string {
  const found =
    problems > 0 ? many(problems, 'problem') : isOk ? 'No problem found' : 'Not everything was checked';
  return `${found} in ${many(checks, 'check')}`;
}
