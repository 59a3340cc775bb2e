import { LIMIT_PREFIX } from '../../lambdas/runtime/store/keys.ts';
import type { Update } from '../../lambdas/runtime/store/table.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import type { Hole } from './relay-holes.ts';
import { replacedCondition, tableTamper } from './tampered-table.ts';

/** Changes the updates of buckets. */
export function buckets(change: (update: Update) => Update): InboxTamper {
  return tableTamper({
    update: (update) => (String(update.Key?.PK).startsWith(LIMIT_PREFIX) ? change(update) : update),
  });
}

/** The rules of a limit, one by one. */
export const LIMIT_HOLES: readonly Hole<InboxTamper>[] = [
  {
    rule: 'a bucket that is not full is not taken for a full one',
    where: 'a limit of one: two messages',
    tamper: buckets((update) =>
      replacedCondition(update, 'nextAt < :full', '(attribute_exists(nextAt) OR nextAt < :full)'),
    ),
    found: /The limit was exceeded/,
  },
  {
    rule: 'a token moves the time of the bucket on',
    where: 'a limit of one: two messages',
    tamper: buckets((update) => {
      const values = update.ExpressionAttributeValues;
      return values?.[':nextAt'] === undefined
        ? update
        : { ...update, ExpressionAttributeValues: { ...values, ':nextAt': 0 } };
    }),
    found: /The limit was exceeded/,
  },
];
