import type { StatusFinding } from '../../../reports/status/status-findings.ts';
import { Diagram } from '../flow/diagram.tsx';
import { Newest } from '../flow/newest.tsx';
import { Command } from '../frame/command.tsx';
import { useMailroom } from '../frame/mailroom.ts';
import { Notice } from '../frame/notice.tsx';
import { Stored } from '../frame/stored.tsx';
import { DemoPanel } from './demo-panel.tsx';

/** Everything that moves, waits or is stuck. */
export function FlowScreen() {
  const { flow, connection } = useMailroom();
  if (flow === null) {
    return (
      <>
        <h1>Flow</h1>
        <Notice is="busy" title={connection === 'lost' ? "The page's server is not responding" : 'Reading'} />
      </>
    );
  }
  return (
    <>
      <h1 class="unseen">Flow</h1>
      <DemoPanel />
      <FindingsList findings={flow.status?.findings ?? []} />
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
      <section class="panel" aria-labelledby="diagram-title">
        <h2 id="diagram-title" class="unseen">
          Flow of events
        </h2>
        <Diagram flow={flow} />
      </section>
      <Newest flow={flow} />
    </>
  );
}

/** The findings of `mailroom status`, each with the commands to run first. */
function FindingsList({ findings }: { readonly findings: readonly StatusFinding[] }) {
  if (findings.length === 0) return null;
  return (
    <section aria-labelledby="findings-title" class="findings">
      <h2 id="findings-title">What to do</h2>
      <ul>
        {findings.map(({ state, what, commands }) => (
          <li key={what}>
            <Notice is={state} title={<Stored text={what} />}>
              {commands.map((line) => (
                <p key={line}>
                  <Command line={line} />
                </p>
              ))}
            </Notice>
          </li>
        ))}
      </ul>
    </section>
  );
}
