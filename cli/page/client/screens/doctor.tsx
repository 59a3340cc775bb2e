import type { ReadingDocuments } from '../../server/readings.ts';
import { Button, Command } from '../frame/controls.tsx';
import { many } from '../frame/format.ts';
import { ReadingBar, useKeptReading } from '../frame/reading.tsx';
import { Notice } from '../frame/state.tsx';
import { Stored } from '../frame/stored.tsx';

/** The checks of `mailroom doctor`: run on a click, because they are a few hundred calls. */
export function DoctorScreen() {
  const used = useKeptReading('doctor');
  const { reading, isReading, read } = used;
  return (
    <>
      <div class="panel-head">
        <h1>Doctor</h1>
        <p class="quiet-text">Compares the deployed resources with their declaration. Changes nothing.</p>
      </div>
      <section class="panel stack">
        <ReadingBar used={used} verb="Checking: up to a minute">
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

function Result({ document }: { readonly document: ReadingDocuments['doctor'] }) {
  const { ok, checks, problems, notChecked, skipped } = document;
  const [is, found] =
    problems.length > 0
      ? (['broken', many(problems.length, 'problem')] as const)
      : ok
        ? (['ok', 'No problem found'] as const)
        : (['look', 'Not everything was checked'] as const);
  return (
    <>
      <Notice is={is} title={`${found} in ${many(checks, 'check')}`} />
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
