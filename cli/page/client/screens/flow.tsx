import { Diagram } from '../flow/diagram.tsx';
import { FindingsList } from '../flow/findings-list.tsx';
import { Newest } from '../flow/newest.tsx';
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
