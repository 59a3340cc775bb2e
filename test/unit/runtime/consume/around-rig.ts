import { errorCode } from '../../../../lambdas/runtime/base/errors.ts';
import type { Around } from '../../../../lambdas/runtime/consume/around.ts';
import { transactionalBatch } from '../../../../lambdas/runtime/consume/batch-handler.ts';
import { type Handler, leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { createConsumer } from '../../../../lambdas/runtime/sources/sqs/consumer.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { consumerConfig, rig, runThrough, ThingHappened } from '../../../support/runtime-rig.ts';
import { domainRow, inboxRow, send } from './consumer-rig.ts';

/** A handler's commit. */
export const write = { writes: [domainRow] };

/** A turn of the event loop. */
export const turn = () => new Promise((resolve) => setImmediate(resolve));
/** A failure. */
export const closed = (): never => {
  throw new Error('the bank is closed');
};

/** A consumer with one message, and a function around its handler. */
export function inside(around: Around | undefined, handlers: readonly Handler[]) {
  const parts = rig();
  const { clock, table, queue, telemetry } = parts;
  const event = send(parts);
  const consume = createConsumer({
    config: consumerConfig,
    table,
    queue,
    handlers,
    clock,
    telemetry,
    around,
  });
  return {
    ...parts,
    event,
    deliver: () => runThrough(clock, queue.deliver(consume, 10, lambdaContext({ clock }))),
    /** The end of its message, without ids and times. */
    end: () => {
      const row = inboxRow(parts, event);
      return {
        status: row?.status,
        attempts: row?.attempts,
        reason: row?.reason,
        lastError: row?.lastError,
        wrote: parts.memory.item({ PK: 'THING#1', SK: 'THING' }) !== undefined,
        waits: queue.messages().length,
      };
    },
  };
}

/** The handlers of the tests, by their kind. Each adds to `runs` when it starts. */
export function handlerOf(kind: string, runs: string[], act: () => unknown = () => undefined): Handler {
  if (kind === 'transactional')
    return transactional(ThingHappened, async () => {
      runs.push(kind);
      await act();
      return write;
    });
  if (kind === 'batch')
    return transactionalBatch(ThingHappened, async () => {
      runs.push(kind);
      await act();
      return write;
    });
  return leased(ThingHappened, async (_, ctx) => {
    runs.push(kind);
    await act();
    if (kind === 'leased, with a commit') await ctx.commit(write);
  });
}

/** The errors that were logged, by code. */
export const codes = ({ telemetry }: Pick<ReturnType<typeof inside>, 'telemetry'>) =>
  telemetry
    .lines()
    .filter(({ level }) => level === 'error')
    .map(({ extra }) => errorCode((extra as { error?: unknown } | undefined)?.error));

/** The kinds of {@link handlerOf}. */
export const KINDS = ['leased', 'leased, with a commit', 'transactional', 'batch'];
