import { SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import type { Update } from '../../lambdas/runtime/store/table.ts';
import { tableOfSchema } from '../../testing/explorer/row-versions.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import type { Hole } from './relay-holes.ts';
import { tamperedTable, withCondition } from './tampered-table.ts';

/** A version that does not look at the schema of a row. */
const BLIND: InboxTamper = { tamperTable: (real) => tableOfSchema(real, SCHEMA + 1) };

const FOUND = /A version of schema 1 changed a row of schema 2/;

/** The rules by which a version leaves rows of a newer schema alone, one by one. */
export const VERSION_HOLES: readonly Hole<InboxTamper>[] = [
  {
    rule: 'an update is refused by a row of a newer schema',
    where: 'a message that a newer version left FAILED',
    tamper: { tamperTable: (real) => tamperedTable(real, { update: withoutSchema }) },
    found: FOUND,
  },
  {
    rule: 'a lease that has passed is not taken over from a newer version',
    where: 'under a lease that has passed',
    tamper: BLIND,
    found: FOUND,
  },
  {
    rule: 'a rejection by a newer version is not reopened',
    where: 'that a newer version rejected',
    tamper: BLIND,
    found: FOUND,
  },
  {
    rule: 'a message that a newer version processed waits for that version',
    where: 'a message that a newer version processed',
    tamper: BLIND,
    found: /A message of a newer version was acknowledged/,
  },
];

function withoutSchema(update: Update): Update {
  const { ConditionExpression: condition = '' } = update;
  return withCondition(
    update,
    condition.replace(' AND (attribute_not_exists(#schema) OR #schema <= :schema)', ''),
  );
}
