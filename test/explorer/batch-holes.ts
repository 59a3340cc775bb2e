import type { Update } from '../../lambdas/runtime/store/table.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import type { Hole } from './relay-holes.ts';
import { tamperedTable } from './tampered-table.ts';

function updates(update: (update: Update) => Update): InboxTamper {
  return { tamperTable: (real) => tamperedTable(real, { update }) };
}

/** A takeover with another value. */
export function takeover(name: string, changed: (value: number) => number): InboxTamper {
  return updates((update) => {
    const values = update.ExpressionAttributeValues;
    if (values?.[':unfinished'] === undefined || !update.UpdateExpression?.includes(':attempts'))
      return update;
    return {
      ...update,
      ExpressionAttributeValues: { ...values, [name]: changed(Number(values[name])) },
    };
  });
}

/** The rules by which a message dies only of its own failures, one by one. */
export const BATCH_HOLES: readonly Hole<InboxTamper>[] = [
  {
    rule: 'a claim without a result counts only when it ran alone',
    where: 'a killer and its neighbor',
    needs: { deviations: 1 },
    tamper: takeover(':attempts', (attempts) => attempts + 1),
    found: /The neighbor of a killer is REJECTED/,
  },
  {
    rule: 'claims without a result are counted',
    where: 'a killer and its neighbor',
    tamper: takeover(':unfinished', () => 1),
    found: /A message that kills its process is PROCESSING/,
  },
  {
    rule: 'an outage takes the attempt of its claim back',
    where: 'a long outage',
    tamper: updates((update) => ({
      ...update,
      UpdateExpression: update.UpdateExpression?.replace('attempts - :one', 'if_not_exists(attempts, :one)'),
    })),
    found: /A message is in the dead-letter queue/,
  },
];
