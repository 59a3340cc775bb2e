import { randomUUID } from 'node:crypto';
import { createPlans } from '../../../../cli/page/server/plans.ts';
import type { Run } from '../../../../cli/page/server/protocol.ts';
import { EXIT, type Io } from '../../../../cli/terminal/io.ts';
import { PoisonMessage } from '../../../../lambdas/runtime/base/errors.ts';
import { type HandlerOptions, leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { deliveredEvent } from '../../../../lambdas/runtime/operations/delivered-event.ts';
import { mintEventId } from '../../../../lambdas/runtime/store/event-id.ts';
import { capturedIo } from '../../../support/captured-io.ts';
import { ThingHappened } from '../../../support/runtime-rig.ts';
import { worker } from './mailroom-in-memory.ts';
import { memoryDeployment } from './memory-deployment.ts';
import { operatingMailroom } from './operating-mailroom.ts';

/** The changes of a page on a Mailroom in memory, whose consumer rejects what its test wants. */
export function plansRig({
  allowsChanges = true,
  charges = false,
  options = {},
}: {
  readonly allowsChanges?: boolean;
  readonly charges?: boolean;
  readonly options?: HandlerOptions<typeof ThingHappened>;
} = {}) {
  /** By `n` of an event, the reason for which the consumer rejects it. */
  const rejects = new Map<number, string>();
  const ran: number[] = [];
  const mailroom = operatingMailroom([
    leased(
      ThingHappened,
      async ({ data: { n } }, ctx) => {
        if (charges) await ctx.once('charge', async () => 'charged');
        const reason = rejects.get(n);
        if (reason !== undefined) throw new PoisonMessage(reason);
        ran.push(n);
      },
      options,
    ),
  ]);
  const { io } = capturedIo();
  const deployment = memoryDeployment(mailroom, { ...io, exitCode: EXIT.ok } satisfies Io, {});
  const announced: Run[] = [];
  const ends = new Map<string, (run: Run) => void>();
  const plans = createPlans({
    deployment,
    allowsChanges,
    announce: (run) => {
      announced.push(run);
      if (run.state !== 'running') ends.get(run.id)?.(run);
    },
  });
  return {
    ...mailroom,
    plans,
    deployment,
    rejects,
    /** The events that the handler has processed, by their `n`. */
    ran,
    announced,
    /** Commits events that the consumer rejects. @returns their dead letters, in the same order */
    dead: async (reason: string, ...numbers: readonly number[]) => {
      for (const n of numbers) rejects.set(n, reason);
      const before = mailroom.queue.deadLetters().length;
      for (const n of numbers) await mailroom.outbox.commit({ events: [mailroom.happened(n)] });
      await mailroom.publish();
      await mailroom.drain();
      return numbers.map((n) => {
        const found = mailroom.queue.deadLetters().slice(before);
        return found.find(({ body }) => JSON.parse(body).detail.data.n === n)?.messageId ?? '';
      });
    },
    /** Puts an event into the consumer's dead-letter queue, as if it had been rejected. @returns its dead letter */
    addDead: (n: number) => {
      const now = mailroom.clock.now();
      const [messageId, eventId] = [randomUUID(), mintEventId(now, 2)];
      const about = {
        aggregateType: 'Thing',
        aggregateId: `thing-${n}`,
        occurredAt: now,
        correlationId: eventId,
      };
      const { source, type, version } = ThingHappened;
      const envelope = JSON.stringify({ eventId, type, version, ...about, data: { n } });
      const place = { account: '111122223333', region: 'eu-west-1', time: now };
      const body = deliveredEvent({ source, type, envelope }, place);
      const letter = { messageId, receiptHandle: messageId, body, sentAt: now, attributes: {} };
      mailroom.addDeadLetter(worker.deadLetterQueue, letter);
      return messageId;
    },
    end: (run: Run): Promise<Run> =>
      mailroom.until(
        new Promise<Run>((resolve) => {
          ends.set(run.id, resolve);
          const over = announced.findLast(({ id, state }) => id === run.id && state !== 'running');
          if (over !== undefined) resolve(over);
        }),
      ),
  };
}
