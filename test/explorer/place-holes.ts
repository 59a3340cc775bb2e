import type { Update } from '../../lambdas/runtime/store/table.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import { buckets } from './limit-holes.ts';
import type { Hole } from './relay-holes.ts';
import { replaced, replacedCondition } from './tampered-table.ts';

/** Changes the updates that take a place. */
function taking(change: (update: Update) => Update): InboxTamper {
  return buckets((update) =>
    /ADD holders|holders = :holders/.test(update.UpdateExpression ?? '') ? change(update) : update,
  );
}

/** The rules of the places of a limit, one by one. */
export const PLACE_HOLES: readonly Hole<InboxTamper>[] = [
  {
    rule: 'a place is taken only if one is free',
    where: 'a concurrency of one: two messages',
    tamper: taking((update) =>
      replacedCondition(update, 'size(holders) < :room', 'attribute_exists(holders)'),
    ),
    found: /More runs than places/,
  },
  {
    rule: 'a place that is taken counts',
    where: 'a concurrency of one: two messages',
    tamper: taking((update) => replaced(update, 'ADD holders', 'ADD wasted')),
    found: /A run goes on without a place/,
  },
  {
    rule: 'a run frees its own place only',
    where: 'a concurrency of two, one place held elsewhere: two messages',
    tamper: buckets((update) => {
      const text = replaced(update, 'DELETE holders :holders', 'REMOVE holders');
      if (text.UpdateExpression === update.UpdateExpression) return update;
      const { ':holders': _, ...values } = update.ExpressionAttributeValues ?? {};
      return { ...text, ExpressionAttributeValues: values };
    }),
    found: /A run goes on without a place/,
  },
  {
    rule: 'a place is held until its function has stopped, whatever its lease',
    where: 'a concurrency of one: two messages',
    tamper: taking((update) => {
      const { ':holders': holders, ...values } = update.ExpressionAttributeValues ?? {};
      const sooner = [...(holders as Set<string>)].map((holder) => {
        const [end, fence] = holder.split('/');
        return `${Number(end) - 60_000}/${fence}`;
      });
      return { ...update, ExpressionAttributeValues: { ...values, ':holders': new Set(sooner) } };
    }),
    found: /A run goes on without a place|More runs than places/,
  },
  {
    rule: 'a place whose function has stopped is free',
    where: 'a concurrency of one: two messages',
    needs: { faults: 1 },
    tamper: taking((update) =>
      replacedCondition(update, 'holders = :asRead', 'holders = :asRead AND attribute_not_exists(PK)'),
    ),
    found: /stuck|dead-letter|left in the queue/,
  },
  {
    rule: 'a newcomer takes no place while a message waits',
    where: 'a concurrency of one, short runs: three messages',
    tamper: taking((update) => replacedCondition(update, 'lineUntil <= :now', 'lineUntil > :schema')),
    found: /A newcomer passed/,
  },
  {
    rule: 'a place is kept for the head of the line',
    where: 'a concurrency of one, long runs: three messages',
    tamper: taking((update) => replacedCondition(update, 'headUntil <= :now', 'headUntil > :schema')),
    found: /The head of the line was passed|A newcomer passed/,
  },
];
