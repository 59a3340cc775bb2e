import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** Metrics that page, raise an alarm, or are read during an incident. */
export const metricMutants: readonly Mutant[] = [
  ...mutantsOf('store/outbox-transitions.ts', unit('outbox-transitions'), [
    {
      rule: 'an event that becomes DEAD is counted',
      from: "telemetry.count('EventsDead');",
      to: '',
    },
    {
      rule: 'only a refused event counts as refused',
      from: "telemetry.count('EventsRefused', refused ? 1 : 0);",
      to: "telemetry.count('EventsRefused');",
    },
    {
      rule: 'the publish latency starts at the commit',
      from: 'publishedAt - eventIdTime(row.eventId)',
      to: '0',
    },
  ]),
  ...mutantsOf('relay/publish-batch.ts', unit('relay-sweep-failures'), [
    { rule: 'a repeated call to the bus is counted', from: "telemetry.count('PublishRetries');", to: '' },
  ]),
  ...mutantsOf('relay/sweep-pass.ts', unit('relay-sweep-failures'), [
    {
      rule: 'the sweep reports the events of undeclared sources',
      from: "telemetry.gauge('UndeclaredEvents', report.undeclared);",
      to: '',
    },
    {
      rule: 'the sweep reports the events that it leaves',
      from: "telemetry.gauge('PendingEvents', report.pending);",
      to: '',
    },
  ]),
];
