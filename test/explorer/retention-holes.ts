import type { Item, Update } from '../../lambdas/runtime/store/table.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import type { Hole } from './relay-holes.ts';
import { setsStatus, tamperedTable, withCondition } from './tampered-table.ts';

const DAY_SECONDS = 86_400;

const WITHOUT_SPARE_DAY: InboxTamper = {
  tamperTable: (real) => tamperedTable(real, { update: expiresADayEarlier }),
};

/** The rules by which a message whose row may be gone does not run, one by one. */
export const RETENTION_HOLES: readonly Hole<InboxTamper>[] = [
  {
    rule: 'a row outlives by a day the age at which a repeat is refused, so that a handler may take its time',
    where: 'to a handler that takes its time',
    tamper: WITHOUT_SPARE_DAY,
    found: /The effects were applied 2 times/,
  },
  {
    rule: 'a row outlives by a day the age at which a repeat is refused, so that clocks may differ',
    where: 'to a clock that is behind',
    tamper: WITHOUT_SPARE_DAY,
    found: /The effects were applied 2 times/,
  },
  {
    rule: 'a row outlives by a day the age at which a repeat is refused, so that a claim may come late',
    where: 'a repeat just before the end of the retention',
    needs: { stalls: 1, deviations: 2 },
    tamper: WITHOUT_SPARE_DAY,
    found: /The effects were applied 2 times/,
  },
  {
    rule: 'an event from before the first start of its consumer is too old a retention after that',
    where: 'repeated after its row has expired',
    tamper: { tamperTable: (real) => tamperedTable(real, { update: claimsWhatHasNoRow }) },
    found: /The effects were applied 2 times/,
  },
  {
    rule: 'the first start of a consumer stays in its history',
    where: 'repeated after its row has expired',
    tamper: { tamperTable: (real) => tamperedTable(real, { got: withoutHistory, update: startsAgain }) },
    found: /The effects were applied 2 times/,
  },
  {
    rule: 'an event from before a rename is claimed only by an operator',
    where: 'from before its consumer got its name',
    tamper: { tamperTable: (real) => tamperedTable(real, { update: claimsWhatHasNoRow }) },
    found: /The effects were applied 2 times/,
  },
];

/** Each start takes itself for the first. */
function withoutHistory(item: Item | undefined): Item | undefined {
  return item?.SK === 'HISTORY' ? undefined : item;
}

function startsAgain(update: Update): Update {
  return update.Key?.SK === 'HISTORY' ? withCondition(update, undefined) : update;
}

function expiresADayEarlier(update: Update): Update {
  const { ':expiresAt': expiresAt, ...values } = update.ExpressionAttributeValues ?? {};
  return typeof expiresAt === 'number'
    ? { ...update, ExpressionAttributeValues: { ...values, ':expiresAt': expiresAt - DAY_SECONDS } }
    : update;
}

/** A claim that an absent row always allows. */
function claimsWhatHasNoRow(update: Update): Update {
  return setsStatus(update, 'PROCESSING')
    ? withCondition(update, `attribute_not_exists(PK) OR (${update.ConditionExpression})`)
    : update;
}
