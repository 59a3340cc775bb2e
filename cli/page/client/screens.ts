import type { OpenMailroom } from './frame/mailroom.ts';
import type { Screen } from './frame/route.ts';
import { AuditScreen } from './screens/audit.tsx';
import { DeadLettersScreen } from './screens/dead-letters.tsx';
import { DoctorScreen } from './screens/doctor.tsx';
import { EventScreen } from './screens/event.tsx';
import { FlowScreen } from './screens/flow.tsx';
import { MessagesScreen } from './screens/messages.tsx';
import { OperationsScreen } from './screens/operations.tsx';

/** The screens, in the order of the navigation. */
export const SCREENS: readonly Screen[] = [
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

/** Failed and rejected messages: what the screen lists first. */
function messages({ flow }: OpenMailroom): number {
  const consumers = Object.values(flow?.status?.consumers ?? {});
  return consumers.reduce((sum, { failed, rejected }) => sum + failed + rejected, 0);
}
