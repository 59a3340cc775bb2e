import { dynamoRows } from '../../../../cli/deployment/dynamo-rows.ts';
import { runMailroom } from '../../../../cli/program.ts';
import { createTerminal } from '../../../../cli/terminal/terminal.ts';
import { PoisonMessage } from '../../../../lambdas/runtime/base/errors.ts';
import { type HandlerOptions, leased } from '../../../../lambdas/runtime/consume/handler.ts';
import type { Payloads } from '../../../../lambdas/runtime/events/payloads.ts';
import { capturedIo } from '../../../support/captured-io.ts';
import { ThingHappened } from '../../../support/runtime-rig.ts';
import { memoryDeployment } from './memory-deployment.ts';
import { operatingMailroom } from './operating-mailroom.ts';

/** The dead-letter source of {@link rejected}. */
export const source = 'consumer:worker';
/** The options that make a change. */
export const APPLY = ['--apply', '--reason', 'the price was wrong'];

/** A Mailroom whose consumer rejects a negative `n`, and one dead letter of such an event. */
export async function rejected({
  effect = false,
  options = {},
  order,
  isNumbered = order !== undefined,
  payloads,
}: {
  readonly effect?: boolean;
  readonly options?: HandlerOptions<typeof ThingHappened>;
  /** The order of the consumer, in its directory entry. */
  readonly order?: string;
  /** The directory says that the event's definition declares a `sequence`. @default if there is an order */
  readonly isNumbered?: boolean;
  /** @default the event carries its payload */
  readonly payloads?: Payloads;
} = {}) {
  const ran: number[] = [];
  const handlers = [
    leased(
      ThingHappened,
      async ({ data: { n } }, ctx) => {
        if (effect) await ctx.once('charge', async () => 'charged');
        if (n < 0) throw new PoisonMessage('n is negative');
        ran.push(n);
      },
      options,
    ),
  ];
  const mailroom = operatingMailroom(handlers, { payloads });
  const { directory } = mailroom;
  const events = [{ ...ThingHappened, sequence: isNumbered }];
  const consumers = directory.consumers.map((entry) => ({ ...entry, order, events }));
  Object.assign(mailroom, { directory: { ...directory, consumers } });
  const [event] = await mailroom.outbox.commit({ events: [mailroom.happened(-1)] });
  await mailroom.publish();
  await mailroom.drain();
  const [letter] = mailroom.queue.deadLetters();
  const deployment = memoryDeployment(mailroom, capturedIo().io, {});
  /** Starts a command, which waits for the work of the Mailroom. */
  const started = async (input: unknown, ...argv: readonly string[]) => {
    const { io, written } = capturedIo({ input: typeof input === 'string' ? input : JSON.stringify(input) });
    const open = async () => ({ ...deployment, terminal: createTerminal(io, true) });
    const exitCode = await runMailroom([...argv, '--json'], Object.assign(io, { open }));
    const [line = '{}'] = (written.out || written.err).trim().split('\n').slice(-1);
    // biome-ignore lint/suspicious/noExplicitAny: each command prints a shape of its own
    return { exitCode, document: JSON.parse(line) as any };
  };
  const command = (...words: Parameters<typeof started>) => mailroom.until(started(...words));
  return {
    ...mailroom,
    ran,
    deployment,
    eventId: event?.eventId ?? '',
    letterId: letter?.messageId ?? '',
    command,
    started,
    resend: (data: unknown, ...options: readonly string[]) =>
      command(data, 'dlq', 'resend', source, letter?.messageId ?? '', '--data', '-', ...options),
    /** The dead letters of the consumer. */
    letters: async () =>
      (await mailroom.queues.receive('dead-letters', { limit: 10 })).map(({ messageId }) => messageId),
    /** Runs work while the queue accepts no message, as if the command crashed at its send. */
    unsent: async <T>(work: () => Promise<T>): Promise<T> => {
      const { send } = mailroom.queues;
      Object.assign(mailroom.queues, { send: () => Promise.reject(new Error('The command died')) });
      const result = await work();
      Object.assign(mailroom.queues, { send });
      return result;
    },
    /** Redrives the dead letter as the AWS console does: it knows of no row. */
    redriveInConsole: async () => {
      mailroom.queue.send(letter?.body ?? '');
      mailroom.remove(letter?.messageId ?? '');
      await mailroom.drain();
    },
    rowOf: (eventId: string) => dynamoRows(mailroom.table).inbox.byEvent('worker', eventId, true),
  };
}
