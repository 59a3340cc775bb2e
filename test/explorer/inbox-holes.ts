import { CLOCK_SKEW_MS } from '../../lambdas/runtime/clock.ts';
import type { Handler, LeasedContext } from '../../lambdas/runtime/consume/handler.ts';
import type { Table, Update } from '../../lambdas/runtime/store/table.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import type { Hole } from './relay-holes.ts';
import { setsStatus, type TableTamper, tamperedTable, withCondition } from './tampered-table.ts';

function table(tamper: TableTamper): InboxTamper {
  return { tamperTable: (real) => tamperedTable(real, tamper) };
}

function replaced(update: Update, from: string | RegExp, to: string): Update {
  return { ...update, UpdateExpression: (update.UpdateExpression ?? '').replace(from, to) };
}

/** Two workers run one effect at the same time; or the slower one cannot store its result, which is found sooner. */
const AT_ONCE = /is run by two workers at once|is refused while its worker runs/;

/** The rules of the inbox, one by one. */
export const INBOX_HOLES: readonly Hole<InboxTamper>[] = [
  {
    rule: 'a failure is refused once the message is PROCESSED',
    where: 'a commit, delivered',
    budget: { faults: 2, stalls: 0 },
    deviations: 4,
    tamper: table({
      update: (update) =>
        setsStatus(update, 'FAILED') && update.ConditionExpression?.includes(':heldFence')
          ? withCondition(update, 'fence = :heldFence')
          : update,
    }),
    found: /A processed message became FAILED/,
  },
  {
    rule: 'our fence means success only where the message is PROCESSED',
    where: 'a handler that swallows',
    budget: { faults: 1, stalls: 0 },
    deviations: 1,
    tamper: { tamperTable: (real) => fenceIsEnough(real) },
    found: /The effect was applied 0 times|is stuck/,
  },
  {
    rule: 'a rejected message is known by every id under which it was rejected',
    where: 'poison',
    budget: { faults: 0, stalls: 0 },
    deviations: 1,
    tamper: table({
      update: (update) =>
        setsStatus(update, 'REJECTED')
          ? replaced(update, /(.*) ADD rejectedIds :rejectedId(.*)/, '$1, rejectedIds = :rejectedId$2')
          : update,
    }),
    found: /A message that was rejected is run again/,
  },
  {
    rule: 'a redrive starts at the first attempt again',
    where: 'a redrive after',
    budget: { faults: 1, stalls: 0 },
    deviations: 1,
    tamper: table({ update: (update) => replaced(update, 'attempts = :one', 'attempts = attempts + :one') }),
    found: /A healthy message is in the dead-letter queue/,
  },
  {
    rule: 'TTL is set only when a message is PROCESSED',
    where: 'an effect and a commit',
    budget: { faults: 0, stalls: 0 },
    deviations: 0,
    tamper: table({
      update: (update) =>
        setsStatus(update, 'PROCESSING')
          ? {
              ...replaced(update, 'SET ', 'SET expiresAt = :expiresAt, '),
              ExpressionAttributeValues: { ...update.ExpressionAttributeValues, ':expiresAt': 9_999_999_999 },
            }
          : update,
    }),
    found: /TTL may delete a message that is PROCESSING/,
  },
  {
    rule: 'a completion is conditional on the fence',
    where: 'a result, delivered',
    budget: { faults: 0, stalls: 1 },
    deviations: 3,
    tamper: table({ update: completesWithoutFence }),
    found: /A worker changed a message that another worker holds/,
  },
  {
    rule: 'an effect that may still run elsewhere is waited for',
    where: 'an effect, delivered',
    budget: { faults: 0, stalls: 1 },
    deviations: 2,
    tamper: table({ update: startsAfter(() => Number.MAX_SAFE_INTEGER) }),
    found: AT_ONCE,
  },
  {
    rule: 'an effect is waited for as long as clocks may differ, by a worker whose clock is ahead',
    where: 'a clock that is ahead',
    budget: { faults: 0, stalls: 1 },
    deviations: 2,
    tamper: table({ update: startsAfter((stopped) => stopped + CLOCK_SKEW_MS) }),
    found: AT_ONCE,
  },
  {
    rule: 'an effect is waited for as long as clocks may differ, after a worker whose clock is behind',
    where: 'a clock that is behind',
    budget: { faults: 0, stalls: 1 },
    deviations: 3,
    tamper: table({ update: startsAfter((stopped) => stopped + CLOCK_SKEW_MS) }),
    found: AT_ONCE,
  },
  {
    rule: 'only the call that started an effect finishes it',
    where: 'an effect that is tried again',
    budget: { faults: 1, stalls: 0 },
    deviations: 2,
    tamper: table({
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
    budget: { faults: 1, stalls: 0 },
    deviations: 2,
    tamper: table({ update: conditionWithout(' AND effects.#effect.#run <= :run') }),
    found: /The result of the effect "charge" is refused while its worker runs/,
  },
  {
    rule: 'an effect starts only under the claim that holds the message',
    where: 'an effect, delivered twice',
    budget: { faults: 0, stalls: 1 },
    deviations: 3,
    tamper: table({
      update: (update) =>
        update.ConditionExpression?.includes(':stopped')
          ? replacedCondition(update, '#status = :heldStatus AND fence = :heldFence', 'attribute_exists(PK)')
          : update,
    }),
    found: /An effect was started by a worker that does not hold the message/,
  },
  {
    rule: 'an effect whose result is stored does not start, although its claim did not find the result',
    where: 'an effect and a commit',
    budget: { faults: 1, stalls: 0 },
    deviations: 1,
    tamper: { tamperTable: startsWhatIsStored },
    found: /An effect whose result is stored was changed/,
  },
  {
    rule: 'a claim keeps the effects of earlier claims',
    where: 'an effect and a commit',
    budget: { faults: 1, stalls: 0 },
    deviations: 1,
    tamper: table({
      update: (update) => replaced(update, 'if_not_exists(effects, :noEffects)', ':noEffects'),
    }),
    found: /The effect "charge" was forgotten/,
  },
  {
    rule: 'a result is stored even by a worker that has lost the message',
    where: 'an effect, delivered twice',
    budget: { faults: 0, stalls: 1 },
    deviations: 2,
    tamper: table({
      update: (update) => replacedCondition(update, '#run = :run', '#run = :run AND fence = :fence'),
    }),
    found: /The result of the effect "charge" is refused while its worker runs/,
  },
  {
    rule: 'a busy message waits until its lease has passed',
    where: 'an effect and a commit',
    budget: { faults: 1, stalls: 0 },
    deviations: 1,
    tamper: {
      tamperQueue: (queue) => ({
        changeVisibility: (receiptHandle) => queue.changeVisibility(receiptHandle, 0),
      }),
    },
    found: /A healthy message is in the dead-letter queue/,
  },
  {
    rule: 'an operator goes by the time of AWS',
    where: 'whose clock is ahead',
    budget: { faults: 0, stalls: 0 },
    deviations: 1,
    tamper: { tamperClock: ({ clock }) => clock },
    found: /taken over while its lease was valid/,
  },
  {
    rule: "a claim between an operator's look and the write wins",
    where: 'who discards',
    budget: { faults: 0, stalls: 0 },
    deviations: 3,
    tamper: table({ update: settlesIf('attribute_not_exists(expiresAt)') }),
    found: /taken over while its lease was valid/,
  },
  {
    rule: "a renewal between an operator's look and the write wins",
    where: 'who resolves',
    budget: { faults: 0, stalls: 1 },
    deviations: 4,
    tamper: table({
      update: (update) =>
        update.ConditionExpression?.includes(':seenLeaseUntil')
          ? withCondition(update, '#status = :seenStatus AND fence = :seenFence')
          : update,
    }),
    found: /taken over while its lease was valid/,
  },
  {
    rule: 'what is processed is not discarded',
    where: 'discards what is redriven',
    budget: { faults: 0, stalls: 0 },
    deviations: 2,
    tamper: table({ update: settlesIf('attribute_exists(PK)') }),
    found: /A processed message became DISCARDED/,
  },
  {
    rule: 'what is processed is not resolved, by force neither',
    where: 'by force',
    budget: { faults: 0, stalls: 0 },
    deviations: 0,
    tamper: table({ update: settlesIf('attribute_exists(PK)') }),
    found: /An operator settled the message, and its effect was applied/,
  },
  {
    rule: 'of two workers that receive one message at once, the lease lets one work',
    where: 'an effect and a commit, in two workers at once',
    budget: { faults: 0, stalls: 0 },
    deviations: 1,
    tamper: table({ update: claimsWhatIsHeld }),
    found: /taken over while its lease was valid/,
  },
  {
    rule: 'the lease, and not its visibility, says who has a message',
    where: 'a visibility change that may come late',
    budget: { faults: 1, stalls: 0 },
    deviations: 2,
    tamper: table({ update: claimsWhatIsHeld }),
    found: /taken over while its lease was valid/,
  },
  {
    rule: 'a commit is refused once an operator has taken the message',
    where: 'by force',
    budget: { faults: 0, stalls: 0 },
    deviations: 1,
    tamper: table({
      update: (update) =>
        setsStatus(update, 'PROCESSED') && update.UpdateExpression?.includes('commitId')
          ? withCondition(update, 'attribute_exists(fence)')
          : update,
    }),
    found: /An operator settled the message, and its effect was applied/,
  },
  {
    rule: 'an effect that fails fails its message, although nothing awaits it',
    where: 'an effect that its handler does not await',
    budget: { faults: 1, stalls: 0 },
    deviations: 1,
    tamper: { tamperHandler: hearsFailures },
    found: /The effects are ""/,
  },
  {
    rule: 'a commit that fails fails its message, although nothing awaits it',
    where: 'a commit that its handler does not await',
    budget: { faults: 1, stalls: 0 },
    deviations: 1,
    tamper: { tamperHandler: hearsFailures },
    found: /The effect was applied 0 times/,
  },
  {
    rule: 'of two workers that receive one message at once, only the one that holds it completes it',
    where: 'a result, in two workers at once',
    budget: { faults: 0, stalls: 1 },
    deviations: 3,
    tamper: table({ update: completesWithoutFence }),
    found: /A worker changed a message that another worker holds/,
  },
  {
    rule: 'a commit without a claim requires that there is no row, however late it takes effect',
    where: 'a transactional handler, delivered once',
    budget: { faults: 1, stalls: 1 },
    deviations: 2,
    tamper: table({ update: commitsWhateverIsThere }),
    found: /The effect was applied 2 times/,
  },
  {
    rule: 'a rejected message that is discarded loses its pointer in the same transaction',
    where: 'discards what is redriven',
    budget: { faults: 0, stalls: 0 },
    deviations: 1,
    tamper: { tamperTable: (real) => pointersStay(real) },
    found: /A REJECTED row and its pointer differ/,
  },
];

/** A handler that hears of the failures of its calls, and ignores them. */
function hearsFailures(handler: Handler): Handler {
  if (handler.kind === 'transactional') return handler;
  const heard = <T>(call: Promise<T>): Promise<T> => {
    call.catch(() => {});
    return call;
  };
  return {
    ...handler,
    handle: (event: never, ctx: LeasedContext) =>
      handler.handle(event, {
        ...ctx,
        once: (name, effect) => heard(ctx.once(name, effect)),
        commit: (commit) => heard(ctx.commit(commit)),
      }),
  };
}

/** A commit without a claim that an existing row does not refuse. */
function commitsWhateverIsThere(update: Update): Update {
  const held = update.ConditionExpression?.includes(':heldFence') ?? false;
  return setsStatus(update, 'PROCESSED') && !held ? withCondition(update, undefined) : update;
}

/** A completion by any worker while the message is held. */
function completesWithoutFence(update: Update): Update {
  return setsStatus(update, 'PROCESSED') && update.ConditionExpression?.includes(':heldFence')
    ? withCondition(update, '#status = :heldStatus')
    : update;
}

/** A claim that a lease does not refuse. */
function claimsWhatIsHeld(update: Update): Update {
  return setsStatus(update, 'PROCESSING') && update.ConditionExpression?.includes('attribute_not_exists(PK)')
    ? withCondition(update, 'attribute_not_exists(processedAt) AND NOT contains(rejectedIds, :messageId)')
    : update;
}

/** Whether an operator takes the message: the update says who did. */
function isDecision({ UpdateExpression = '' }: Update): boolean {
  return /(resolved|discarded)By = /.test(UpdateExpression);
}

/** An operator's decision under another condition. */
function settlesIf(condition: string): (update: Update) => Update {
  return (update) => (isDecision(update) ? withCondition(update, condition) : update);
}

/** An operator's decision is the row's alone. */
function pointersStay(real: Table): Table {
  return {
    ...real,
    transact: (actions, token) => {
      const [first] = actions;
      const decides = first?.Update !== undefined && isDecision(first.Update);
      return real.transact(decides ? [first] : actions, token);
    },
  };
}

/** An update whose condition has a part replaced, if it has it. */
function replacedCondition(update: Update, part: string, by: string): Update {
  const { ConditionExpression: condition = '' } = update;
  return condition.includes(part) ? withCondition(update, condition.replace(part, by)) : update;
}

/** An update whose condition lacks a part. */
function conditionWithout(part: string): (update: Update) => Update {
  return (update) => replacedCondition(update, part, '');
}

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

/** Whatever the row says, our fence on it is taken for our commit. */
function fenceIsEnough(real: Table): Table {
  let commitId: unknown;
  return {
    ...real,
    transact: (actions, token) => {
      commitId = actions[0]?.Update?.ExpressionAttributeValues?.[':commitId'] ?? commitId;
      return real.transact(actions, token);
    },
    get: async (key, options) => {
      const item = await real.get(key, options);
      return item?.status === 'PROCESSING' ? { ...item, status: 'PROCESSED', commitId } : item;
    },
  };
}
