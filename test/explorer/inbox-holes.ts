import type { Handler, LeasedContext } from '../../lambdas/runtime/consume/handler.ts';
import type { Table, Update } from '../../lambdas/runtime/store/table.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import type { Hole } from './relay-holes.ts';
import { replaced, setsStatus, tableTamper, withCondition } from './tampered-table.ts';

/** The rules of a claim and its end, one by one. */
export const INBOX_HOLES: readonly Hole<InboxTamper>[] = [
  {
    rule: 'a failure is refused once the message is PROCESSED',
    where: 'a commit, delivered',
    needs: { faults: 2, deviations: 4 },
    tamper: tableTamper({
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
    needs: { faults: 1, deviations: 1 },
    tamper: { tamperTable: (real) => fenceIsEnough(real) },
    found: /The effect was applied 0 times|is stuck/,
  },
  {
    rule: 'a rejected message is known by every id under which it was rejected',
    where: 'poison',
    needs: { deviations: 1 },
    tamper: tableTamper({
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
    needs: { faults: 1, deviations: 1 },
    tamper: tableTamper({
      update: (update) =>
        update.ConditionExpression?.includes(':REJECTED')
          ? replaced(update, 'attempts = :attempts', 'attempts = attempts + :attempts')
          : update,
    }),
    found: /A message is in the dead-letter queue/,
  },
  {
    rule: 'TTL is set only when a message is PROCESSED',
    where: 'an effect and a commit',
    tamper: tableTamper({
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
    needs: { stalls: 1, deviations: 3 },
    tamper: tableTamper({ update: completesWithoutFence }),
    found: /A worker changed a message that another worker holds/,
  },
  {
    rule: 'a busy message waits until its lease has passed',
    where: 'an effect and a commit',
    needs: { faults: 1, deviations: 1 },
    tamper: {
      tamperQueue: (queue) => ({
        changeVisibility: (receiptHandle) => queue.changeVisibility(receiptHandle, 0),
      }),
    },
    found: /A message is in the dead-letter queue/,
  },
  {
    rule: 'of two workers that receive one message at once, the lease lets one work',
    where: 'an effect and a commit, in two workers at once',
    needs: { deviations: 1 },
    tamper: tableTamper({ update: claimsWhatIsHeld }),
    found: /taken over while its lease was valid/,
  },
  {
    rule: 'the lease, and not its visibility, says who has a message',
    where: 'a visibility change that may come late',
    needs: { faults: 1, deviations: 2 },
    tamper: tableTamper({ update: claimsWhatIsHeld }),
    found: /taken over while its lease was valid/,
  },
  {
    rule: 'an effect that fails fails its message, although nothing awaits it',
    where: 'an effect that its handler does not await',
    needs: { faults: 1, deviations: 1 },
    tamper: { tamperHandler: ignoresFailures },
    found: /The effects are ""/,
  },
  {
    rule: 'a commit that fails fails its message, although nothing awaits it',
    where: 'a commit that its handler does not await',
    needs: { faults: 1, deviations: 1 },
    tamper: { tamperHandler: ignoresFailures },
    found: /The effect was applied 0 times/,
  },
  {
    rule: 'a commit is refused beside an effect whose end its handler has not seen',
    where: 'a commit beside an effect',
    needs: { faults: 1, deviations: 1 },
    tamper: { tamperHandler: ignoresFailures },
    found: /The effects are ""/,
  },
  {
    rule: 'of two workers that receive one message at once, only the one that holds it completes it',
    where: 'a result, in two workers at once',
    needs: { stalls: 1, deviations: 3 },
    tamper: tableTamper({ update: completesWithoutFence }),
    found: /A worker changed a message that another worker holds/,
  },
  {
    rule: 'a commit without a claim requires that there is no row, however late it takes effect',
    where: 'a transactional handler, delivered once',
    needs: { faults: 1, stalls: 1, deviations: 2 },
    tamper: tableTamper({ update: commitsWhateverIsThere }),
    found: /The effect was applied 2 times/,
  },
];

/** A handler whose commit and whose end wait for its calls, and ignore their failures. */
function ignoresFailures(handler: Handler): Handler {
  if (handler.kind === 'transactional') return handler;
  return {
    ...handler,
    handle: async (event: never, ctx: LeasedContext) => {
      const calls: Promise<unknown>[] = [];
      const kept = <T>(call: Promise<T>): Promise<T> => {
        calls.push(call);
        return call;
      };
      const result = await handler.handle(event, {
        ...ctx,
        once: (name, effect) => kept(ctx.once(name, effect)),
        commit: (commit) => kept(Promise.allSettled(calls).then(() => ctx.commit(commit))),
      });
      await Promise.allSettled(calls);
      return result;
    },
  };
}

/** A completion by any worker while the message is held. */
function completesWithoutFence(update: Update): Update {
  return setsStatus(update, 'PROCESSED') && update.ConditionExpression?.includes(':heldFence')
    ? withCondition(update, '#status = :PROCESSING')
    : update;
}

/** A claim that a lease does not refuse. */
function claimsWhatIsHeld(update: Update): Update {
  return setsStatus(update, 'PROCESSING') && update.ConditionExpression?.includes('attribute_not_exists(PK)')
    ? withCondition(update, 'attribute_not_exists(processedAt) AND NOT contains(rejectedIds, :messageId)')
    : update;
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

/** A commit without a claim that an existing row does not refuse. */
function commitsWhateverIsThere(update: Update): Update {
  const held = update.ConditionExpression?.includes(':heldFence') ?? false;
  return setsStatus(update, 'PROCESSED') && !held ? withCondition(update, undefined) : update;
}
