import { isOpen } from '../../../reports/findings/finding-counts.ts';
import type { Flow } from '../../server/protocol.ts';
import { Busy } from '../frame/busy.tsx';
import { At } from '../frame/clocks.tsx';
import { useFirst } from '../frame/controls.tsx';
import { Finding } from '../frame/finding.tsx';
import { useMailroom } from '../frame/mailroom.ts';
import { Notice } from '../frame/state.tsx';
import { Stored } from '../frame/stored.tsx';
import { Diagram } from './diagram.tsx';
import { Faults } from './faults.tsx';
import { Newest } from './newest.tsx';
import { RunResult } from './run-result.tsx';
import { SourceConsumers } from './source-consumers.tsx';
import { NO_FLOW } from './stories.ts';

/** The result of a run of the demo, the findings, then everything that moves, waits or is stuck. */
export function FlowScreen() {
  const mailroom = useMailroom();
  const flow = mailroom.flow ?? NO_FLOW;
  const receipt = mailroom.demo?.receipt;
  return (
    <>
      <h1 class="unseen">Flow</h1>
      {receipt && <RunResult receipt={receipt} />}
      {flow.status === null ? (
        <p role="status">
          <Busy what="the outbox, every queue and the wiring between them" />
        </p>
      ) : (
        <Findings findings={flow.status.findings} />
      )}
      {flow.unread.map(({ part, message }) => (
        <Notice
          key={part}
          is="look"
          title={
            <>
              Not read: <Stored text={part} />
            </>
          }
        >
          <p>
            <Stored text={message} />
          </p>
        </Notice>
      ))}
      <section aria-labelledby="diagram-title">
        <h2 id="diagram-title" class="unseen">
          Flow of events
        </h2>
        <Diagram flow={flow} />
      </section>
      <Faults />
      <SourceConsumers status={flow.status} />
      <Newest flow={flow} />
    </>
  );
}

/** The findings that are shown at first: with more, the flow would be out of sight. */
const FINDINGS_SHOWN = 4;

/** The findings of `mailroom status`: each with the commands to run first, or with the operator who has acknowledged it. */
function Findings({ findings }: Pick<NonNullable<Flow['status']>, 'findings'>) {
  const { shown, more } = useFirst(findings, FINDINGS_SHOWN);
  // Its words have numbers that change: an open finding stays open.
  const ids = findings.map(({ id, code }) => id ?? code);
  const keys = ids.map((id, index) => `${id} ${ids.slice(0, index).filter((one) => one === id).length}`);
  if (findings.length === 0) return null;
  return (
    <section aria-labelledby="findings-title" class="findings">
      <h2 id="findings-title">{findings.some(isOpen) ? 'What to do' : 'Acknowledged'}</h2>
      <div class="panel">
        <ul class="lines">
          {shown.map(({ state, what, commands, acknowledged }, index) => (
            <Finding
              key={keys[index]}
              is={acknowledged === undefined ? state : 'idle'}
              text={what}
              commands={commands}
              note={acknowledged && 'acknowledged'}
            >
              {acknowledged && (
                <p>
                  Acknowledged by <Stored text={acknowledged.by} clip={80} /> until{' '}
                  <At at={acknowledged.until} />: <Stored text={acknowledged.reason} clip={200} />
                </p>
              )}
            </Finding>
          ))}
        </ul>
      </div>
      {more}
    </section>
  );
}
