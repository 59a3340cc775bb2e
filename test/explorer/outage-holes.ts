import { takeover } from './batch-holes.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import type { Hole } from './relay-holes.ts';
import { tamperedTable } from './tampered-table.ts';

/** The rules of an outage of the whole table, one by one. */
export const OUTAGE_HOLES: readonly Hole<InboxTamper>[] = [
  {
    rule: 'a wait that a provider asks for counts no attempt',
    where: 'a provider that asks for waits',
    tamper: {
      tamperTable: (real) =>
        tamperedTable(real, {
          update: (update) => ({
            ...update,
            UpdateExpression: update.UpdateExpression?.replace(
              'attempts - :one',
              'if_not_exists(attempts, :one)',
            ),
          }),
        }),
    },
    found: /A message is in the dead-letter queue/,
  },
  {
    rule: 'a claim without a result because of an outage counts no attempt',
    where: 'a table that is away for hours',
    needs: { deviations: 1 },
    tamper: takeover(':attempts', (attempts) => attempts + 1),
    found: /A healthy message was processed in attempt 2/,
  },
  {
    rule: 'a receive during an outage is put back by the schedule of outages',
    where: 'a table that is away for hours',
    needs: { deviations: 1 },
    tamper: {
      tamperQueue: (queue) => ({
        changeVisibility: (receiptHandle, seconds) =>
          queue.changeVisibility(receiptHandle, Math.min(60, seconds)),
      }),
    },
    found: /A message is in the dead-letter queue/,
  },
  {
    rule: 'a worker that reaches the table again takes the attempt back',
    where: 'a table that is away for seconds',
    needs: { deviations: 1 },
    tamper: {
      tamperTable: (real) =>
        tamperedTable(real, {
          update: (update) => ({
            ...update,
            UpdateExpression: update.UpdateExpression?.replace(
              'attempts - :one',
              'if_not_exists(attempts, :one)',
            ),
          }),
        }),
    },
    found: /A healthy message was processed in attempt 2/,
  },
];
