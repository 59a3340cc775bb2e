import { raising, readLastSequence } from '../../lambdas/runtime/store/dynamo/last-sequence.ts';
import type { PlaceInOrder } from '../../lambdas/runtime/store/inbox-row.ts';
import { LAST_PREFIX } from '../../lambdas/runtime/store/keys.ts';
import { passedOver } from '../../lambdas/runtime/store/last-sequence.ts';
import type { Table, TransactAction, Update } from '../../lambdas/runtime/store/table.ts';
import type { Actor } from '../../testing/explorer/actor.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import type { Hole } from './relay-holes.ts';
import { setsStatus, tableTamper, tamperedTable, withCondition } from './tampered-table.ts';

/** The rules of an order, one by one. */
export const ORDER_HOLES: readonly Hole<InboxTamper>[] = [
  {
    rule: 'a commit raises the last number on condition that it is as its gate has read it',
    where: 'latest: two numbers, leased',
    needs: { deviations: 1 },
    tamper: tableTamper({ update: raisedIf('attribute_exists(PK) OR attribute_not_exists(PK)') }),
    found: /A last sequence went from 2 to 1|1,2 were committed/,
  },
  {
    rule: 'the condition is the number itself: a lower one hides an event that was applied since the reads',
    where: 'latest: two numbers',
    needs: { deviations: 2 },
    tamper: tableTamper({ update: raisedIf('attribute_not_exists(#last) OR #last < :last') }),
    found: /The numbers were applied as 2, and 1,2 were committed/,
  },
  {
    rule: 'a number waits for its predecessor',
    where: 'strict: two numbers in the wrong order, leased',
    tamper: { tamperTable: (real) => lastReadAs(real, 1) },
    found: /The numbers were applied as/,
  },
  {
    rule: 'a commit and its number are one transaction',
    where: 'strict: two numbers',
    needs: { faults: 1, deviations: 1 },
    tamper: { tamperTable: numberLater },
    found: /The message is stuck|dead-letter queue|The numbers were applied as|The last number is/,
  },
  {
    rule: 'a message that is completed without a commit raises the number',
    where: 'strict: a handler that only returns',
    tamper: { tamperTable: (real) => withoutNumber(real, (update) => setsStatus(update, 'PROCESSED')) },
    found: /dead-letter queue/,
  },
  {
    rule: 'a rejection that skips raises the number',
    where: 'strict, skips: a rejected number, and its redrive',
    tamper: { tamperTable: (real) => withoutNumber(real, (update) => setsStatus(update, 'REJECTED')) },
    found: /The numbers were applied as 1,2/,
  },
  {
    rule: 'a rejection for a gap does not raise the number, even if it has become next meanwhile',
    where: 'strict, skips: a gap until the last receive',
    needs: { deviations: 1 },
    tamper: { tamperTable: gapsSkipped },
    found: /The numbers were applied as 1,/,
  },
  {
    rule: 'a rejection of a number that may have been applied does not raise the number',
    where: 'numbers that may have been applied, allowed and redriven',
    tamper: { tamperTable: gapsSkipped },
    found: /The numbers were applied as none/,
  },
  {
    rule: 'a superseded number is absorbed, although it may have been applied',
    where: 'a number that may have been applied, skipped and redriven',
    tamper: tableTamper({ update: readmittedIfAllowed }),
    found: /dead-letter queue/,
  },
  {
    rule: 'each service has its own last numbers',
    where: 'latest: a number, and a lower one of another service',
    tamper: { tamperTable: withoutService },
    found: /The number of the other service was not applied/,
  },
  {
    rule: 'a last number never expires',
    where: 'a replay of the archive after the inbox rows have expired',
    tamper: tableTamper({ update: withExpiry }),
    found: /dead-letter queue/,
  },
  {
    rule: 'a skip raises the number only from its predecessor',
    where: 'an operator who skips',
    needs: { deviations: 1 },
    tamper: tableTamper({ update: raisedIf('attribute_exists(PK) OR attribute_not_exists(PK)') }),
    found: /A last sequence went from/,
  },
  {
    rule: 'a seed raises the number only from the one that it has read',
    where: 'an operator who seeds the first number',
    needs: { deviations: 2 },
    tamper: { tamperTable: unconditionalAtOperator },
    found: /A last sequence went from/,
  },
  {
    rule: 'a backfill begins a sequence only where there is none',
    where: 'a backfill',
    tamper: { tamperTable: unconditionalAtOperator },
    found: /A last sequence went from/,
  },
  {
    rule: 'a decision passes over its number in its transaction',
    where: 'an operator who resolves the first number',
    needs: { deviations: 1 },
    tamper: {
      tamperTable: (real) =>
        withoutNumber(real, (update) => /resolvedBy/.test(update.UpdateExpression ?? '')),
    },
    found: /dead-letter queue/,
  },
  {
    rule: 'a discard passes over its number in its transaction',
    where: 'an operator who discards the first number',
    tamper: { tamperTable: (real) => withoutNumber(real, (update) => setsStatus(update, 'DISCARDED')) },
    found: /dead-letter queue/,
  },
  {
    rule: 'a decision raises the number only from the one that it has read',
    where: 'latest: an operator who resolves',
    needs: { deviations: 3 },
    tamper: { tamperTable: unconditionalAtOperator },
    found: /A last sequence went from/,
  },
  {
    rule: 'a decision waits for the predecessor of its number',
    where: 'resolves the second number early',
    needs: { deviations: 1 },
    tamper: { tamperTable: (real, actor) => (actor.name === 'operator' ? lastReadAs(real, 1) : real) },
    found: /The numbers were applied as none/,
  },
];

function isNumber({ Update }: TransactAction): boolean {
  return String(Update?.Key?.PK).startsWith(LAST_PREFIX);
}

/** A number that is raised on another condition. */
function raisedIf(condition: string): (update: Update) => Update {
  return (update) => (isNumber({ Update: update }) ? withCondition(update, condition) : update);
}

/** A table where an operator sets a number, whatever it is. */
function unconditionalAtOperator(real: Table, { name }: Actor): Table {
  return name === 'operator'
    ? tamperedTable(real, { update: raisedIf('attribute_exists(PK) OR attribute_not_exists(PK)') })
    : real;
}

/** A table where an absent or lower number is read as this one, and is raised whatever it is. */
export function lastReadAs(real: Table, last: number): Table {
  const blind = tamperedTable(real, { update: raisedIf('attribute_exists(PK) OR attribute_not_exists(PK)') });
  return {
    ...blind,
    get: async (key, options) => {
      const item = await blind.get(key, options);
      const isLower = key.PK.startsWith(LAST_PREFIX) && Number(item?.last ?? 0) < last;
      return isLower ? { ...key, schema: 1, at: 0, last } : item;
    },
  };
}

/** Transactions whose first update is such a one do not raise the number. */
function withoutNumber(real: Table, where: (update: Update) => boolean): Table {
  return {
    ...real,
    transact: (actions, token) => {
      const [first] = actions;
      const isOne = first?.Update !== undefined && where(first.Update);
      return real.transact(isOne ? actions.filter((action) => !isNumber(action)) : actions, token);
    },
  };
}

/** The number in a second transaction, after the commit. */
function numberLater(real: Table): Table {
  return {
    ...real,
    transact: async (actions, token) => {
      const numbers = actions.filter(isNumber);
      const others = actions.filter((action) => !isNumber(action));
      if (numbers.length === 0 || others.length === 0) return real.transact(actions, token);
      await real.transact(others, token);
      await real.transact(numbers, `${token}-2`);
    },
  };
}

/** Each rejection passes over its number if that is next when it is written, as one of its handler does. */
function gapsSkipped(real: Table): Table {
  return {
    ...real,
    transact: async (actions, token) => {
      const [first] = actions;
      const place = first?.Update?.ExpressionAttributeValues?.[':order'] as PlaceInOrder | undefined;
      if (first?.Update === undefined || place === undefined || !setsStatus(first.Update, 'REJECTED'))
        return real.transact(actions, token);
      const seen = await readLastSequence({ table: real }, place.key);
      return real.transact([...actions, ...raising({ now: () => 0 }, passedOver(place, seen))], token);
    },
  };
}

/** A message that was rejected as too old is claimed only if an operator has allowed it. */
function readmittedIfAllowed(update: Update): Update {
  const { ConditionExpression = '' } = update;
  const isReadmission =
    setsStatus(update, 'PROCESSING') && ConditionExpression.includes('#status = :REJECTED');
  return isReadmission
    ? withCondition(update, `${ConditionExpression} AND attribute_exists(runAnyway)`)
    : update;
}

/** A table where the last numbers of two services are one. */
function withoutService(real: Table): Table {
  const shared = (PK: unknown) => String(PK).replace('#shelves#', '#things#');
  const sharedIn = ({ Update: update, ...action }: TransactAction): TransactAction =>
    update !== undefined && isNumber({ Update: update })
      ? { Update: { ...update, Key: { ...update.Key, PK: shared(update.Key?.PK) } } }
      : { ...action, ...(update !== undefined && { Update: update }) };
  return {
    ...real,
    get: (key, options) => real.get({ ...key, PK: shared(key.PK) }, options),
    transact: (actions, token) => real.transact(actions.map(sharedIn), token),
  };
}

/** A number that TTL deletes together with the inbox rows. */
function withExpiry(update: Update): Update {
  if (!isNumber({ Update: update })) return update;
  const { UpdateExpression = '', ExpressionAttributeValues: values } = update;
  return {
    ...update,
    UpdateExpression: UpdateExpression.replace('SET ', 'SET expiresAt = :expiresAt, '),
    ExpressionAttributeValues: { ...values, ':expiresAt': Math.ceil(Number(values?.[':at']) / 1_000) + 1 },
  };
}
