import { CLOCK_SKEW_MS } from '../../lambdas/runtime/base/clock.ts';
import type { Table, Update } from '../../lambdas/runtime/store/table.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import type { Hole } from './relay-holes.ts';
import {
  conditionWithout,
  replaced,
  replacedCondition,
  setsStatus,
  tableTamper,
  tamperedTable,
  withCondition,
} from './tampered-table.ts';

/** Two workers run one effect at the same time; or the slower one cannot store its result, which is found sooner. */
const AT_ONCE = /is run by two workers at once|is refused while its worker runs/;

/** The rules of an effect, one by one. */
export const EFFECT_HOLES: readonly Hole<InboxTamper>[] = [
  {
    rule: 'an effect that may still run elsewhere is waited for',
    where: 'an effect, delivered',
    needs: { stalls: 1, deviations: 2 },
    tamper: tableTamper({ update: startsAfter(() => Number.MAX_SAFE_INTEGER) }),
    found: AT_ONCE,
  },
  {
    rule: 'an effect is waited for as long as clocks may differ, by a worker whose clock is ahead',
    where: 'a clock that is ahead',
    needs: { stalls: 1, deviations: 2 },
    tamper: tableTamper({ update: startsAfter((stopped) => stopped + CLOCK_SKEW_MS) }),
    found: AT_ONCE,
  },
  {
    rule: 'an effect is waited for as long as clocks may differ, after a worker whose clock is behind',
    where: 'a clock that is behind',
    needs: { stalls: 1, deviations: 3 },
    tamper: tableTamper({ update: startsAfter((stopped) => stopped + CLOCK_SKEW_MS) }),
    found: AT_ONCE,
  },
  {
    rule: 'only the call that started an effect finishes it',
    where: 'an effect that is tried again',
    needs: { faults: 1, deviations: 2 },
    tamper: tableTamper({
      update: (update) =>
        update.ConditionExpression?.includes('#run = :run')
          ? withCondition(update, 'effects.#effect.#status = :IN_PROGRESS AND effects.#effect.fence = :fence')
          : update,
    }),
    found: /The result of the effect "charge" is refused while its worker runs/,
  },
  {
    rule: 'a delayed start does not replace a later call of the same claim',
    where: 'an effect that is tried again',
    needs: { faults: 1, deviations: 2 },
    tamper: tableTamper({ update: conditionWithout(' AND effects.#effect.#run <= :run') }),
    found: /The result of the effect "charge" is refused while its worker runs/,
  },
  {
    rule: 'an effect starts only under the claim that holds the message',
    where: 'an effect, delivered twice',
    needs: { stalls: 1, deviations: 3 },
    tamper: tableTamper({
      update: (update) =>
        update.ConditionExpression?.includes(':stopped')
          ? replacedCondition(update, '#status = :PROCESSING AND fence = :heldFence', 'attribute_exists(PK)')
          : update,
    }),
    found: /An effect was started by a worker that does not hold the message/,
  },
  {
    rule: 'an effect whose result is stored does not start, although its claim did not find the result',
    where: 'an effect and a commit',
    needs: { faults: 1, deviations: 1 },
    tamper: { tamperTable: startsWhatIsStored },
    found: /An effect whose result is stored was changed/,
  },
  {
    rule: 'a claim keeps the effects of earlier claims',
    where: 'an effect and a commit',
    needs: { faults: 1, deviations: 1 },
    tamper: tableTamper({
      update: (update) => replaced(update, 'if_not_exists(effects, :noEffects)', ':noEffects'),
    }),
    found: /The effect "charge" was forgotten/,
  },
  {
    rule: 'a result is stored even by a worker that has lost the message',
    where: 'an effect, delivered twice',
    needs: { stalls: 1, deviations: 2 },
    tamper: tableTamper({
      update: (update) => replacedCondition(update, '#run = :run', '#run = :run AND fence = :fence'),
    }),
    found: /The result of the effect "charge" is refused while its worker runs/,
  },
  {
    rule: 'a takeover records the effects that its worker has read',
    where: 'an effect, delivered twice',
    needs: { stalls: 1, deviations: 3 },
    tamper: tableTamper({ update: conditionWithout(' AND effects = :seenEffects') }),
    found: /ran the effect "charge", and is not among the past attempts/,
  },
  {
    rule: 'a failed attempt records the effects that it ran',
    where: 'an effect and a commit',
    needs: { faults: 1, deviations: 2 },
    tamper: tableTamper({
      update: (update) =>
        setsStatus(update, 'FAILED')
          ? withCondition(replaced(update, ', pastAttempts = :pastAttempts', ''), update.ConditionExpression)
          : update,
    }),
    found: /ran the effect "charge", and is not among the past attempts/,
  },
];

/** An effect starts even if it is completed. No claim returns the results that it finds: they would hide that. */
function startsWhatIsStored(real: Table): Table {
  const update = (made: Update) =>
    replacedCondition(
      made,
      '= :RELEASED AND',
      '= :RELEASED OR attribute_exists(effects.#effect.completedAt) AND',
    );
  const table = tamperedTable(real, { update });
  return {
    ...table,
    write: async (action) => {
      const item = await table.write(action);
      return item && { ...item, effects: {} };
    },
  };
}

/** The start of an effect, by a worker that thinks otherwise about when another one has stopped. */
function startsAfter(stoppedBy: (stopped: number) => number): (update: Update) => Update {
  return (update) => {
    const { ':stopped': stopped, ...values } = update.ExpressionAttributeValues ?? {};
    return typeof stopped === 'number'
      ? { ...update, ExpressionAttributeValues: { ...values, ':stopped': stoppedBy(stopped) } }
      : update;
  };
}
