import { render } from 'preact';
import { DeadLettersScreen } from './dead-letters/dead-letters-screen.tsx';
import { EventScreen } from './event/event-screen.tsx';
import { FlowScreen } from './flow/flow-screen.tsx';
import { App } from './frame/app.tsx';
import type { OpenMailroom } from './frame/mailroom.ts';
import type { Screen } from './frame/route.ts';
import { RunPanel } from './plans/run-panel.tsx';
import { AuditScreen } from './screens/audit.tsx';
import { DoctorScreen } from './screens/doctor.tsx';
import { MessagesScreen } from './screens/messages.tsx';
import { OperationsScreen } from './screens/operations.tsx';

/** The screens, in the order of the navigation. */
const SCREENS: readonly Screen[] = [
  { name: 'flow', title: 'Flow', View: FlowScreen },
  { name: 'event', title: 'Event', View: EventScreen },
  { name: 'dead-letters', title: 'Dead letters', View: DeadLettersScreen, countOf: deadLetters },
  { name: 'messages', title: 'Messages', View: MessagesScreen, countOf: messages },
  { name: 'doctor', title: 'Doctor', View: DoctorScreen },
  { name: 'audit', title: 'Audit', View: AuditScreen },
  { name: 'operations', title: 'Operations log', View: OperationsScreen },
];

function deadLetters({ flow }: OpenMailroom): number {
  return (flow?.status?.deadLetterSources ?? []).reduce((sum, { count }) => sum + count, 0);
}

/** Failed and rejected messages: those that the screen lists at first. */
function messages({ flow }: OpenMailroom): number {
  const { consumers = {}, sourceConsumers = {} } = flow?.status ?? {};
  return [...Object.values(consumers), ...Object.values(sourceConsumers)].reduce(
    (sum, { failed, rejected }) => sum + failed + rejected,
    0,
  );
}

render(<App screens={SCREENS} Runs={RunPanel} />, document.body);
