import { Command } from 'commander';
import { TOO_OLD } from '../lambdas/runtime/consume/inbox-conditions.ts';
import { MailroomError } from '../lambdas/runtime/errors.ts';
import { isEventId, outboxKeyOf } from '../lambdas/runtime/event-id.ts';
import { allowTooOld, resolveMessage } from '../lambdas/runtime/operate/message-operations.ts';
import { recordOperation } from '../lambdas/runtime/operate/operations.ts';
import { asRow, type InboxRow, inboxKey } from '../lambdas/runtime/rows.ts';
import { messageIdArgument, reasonArgument } from './frame/arguments.ts';
import { withSession } from './frame/command.ts';
import { EXIT } from './frame/exit-code.ts';
import type { Io } from './frame/io.ts';
import { time } from './frame/output.ts';
import type { Session } from './frame/session.ts';

interface DecisionOptions {
  readonly reason: string;
  readonly force?: boolean;
}

/** `mailroom message`: what an operator decides about one message of one consumer. */
export function messageCommand(io: Io): Command {
  return new Command('message')
    .description('Decides about one message of one consumer.')
    .addCommand(resolveCommand(io))
    .addCommand(allowCommand(io));
}

function decision(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .argument('<consumer>', 'the name of the consumer')
    .argument('<eventId>', 'the id of the event, or unreadable-<SQS message id>', messageIdArgument)
    .requiredOption('--reason <text>', 'why; stored on the row', reasonArgument);
}

function resolveCommand(io: Io): Command {
  return decision('resolve', 'Sets a message PROCESSED without running it: its work was done by hand.')
    .option('--force', 'also while a worker holds it, and for an event that is not known (any more)')
    .action(
      withSession<[string, string], DecisionOptions>(
        io,
        async (session, { reason, force }, name, eventId) => {
          const consumer = session.consumer(name);
          const row = await inboxRow(session, name, eventId);
          if (force !== true) await requireEvent(session, row, eventId);
          const { status } = row ?? {};
          if (status === 'PROCESSED' || status === 'DISCARDED')
            return report(session, name, eventId, `was ${status} before`, status.toLowerCase());
          if (force !== true) refuseLeased(row, name, eventId);
          const by = await session.operator();
          await record(session, 'message resolve', { by, reason }, name, eventId, force);
          const result = await resolveMessage(session, {
            consumer: name,
            eventId,
            reason,
            by,
            inboxRetentionDays: consumer.inboxRetentionDays,
            force,
          });
          if (result.status === 'leased') throw leased(name, eventId, result.until);
          return report(session, name, eventId, `is ${result.status}`, result.status);
        },
      ),
    );
}

function allowCommand(io: Io): Command {
  return decision(
    'allow',
    'Lets a message run that was rejected because its event is older than the inbox retention: you know that it was not ' +
      'processed. Redrive it afterwards.',
  ).action(
    withSession<[string, string], DecisionOptions>(io, async (session, { reason }, name, eventId) => {
      session.consumer(name);
      const by = await session.operator();
      const row = await inboxRow(session, name, eventId);
      // Any other is refused, and what was refused is nothing to remember.
      if (row?.reason === TOO_OLD) await record(session, 'message allow', { by, reason }, name, eventId);
      await allowTooOld(session, { consumer: name, eventId, by, reason });
      const next = session.commandLine(`dlq redrive consumer:${name} --letter ${eventId} --apply`);
      return report(session, name, eventId, `is allowed to run. To let it: ${next}`, 'allowed');
    }),
  );
}

async function inboxRow(
  { table }: Session,
  consumer: string,
  eventId: string,
): Promise<InboxRow | undefined> {
  const item = await table.get(inboxKey(consumer, eventId), { consistent: true });
  return item === undefined ? undefined : asRow<InboxRow>(item);
}

/** An id that was mistyped would be resolved for nobody, and whoever typed it would believe that it was done. */
async function requireEvent(
  { table, directory }: Session,
  row: InboxRow | undefined,
  eventId: string,
): Promise<void> {
  if (row !== undefined) return;
  if (isEventId(eventId) && (await table.get(outboxKeyOf(eventId), { consistent: true })) !== undefined)
    return;
  throw new MailroomError(
    'NO_SUCH_EVENT',
    `There is no event ${eventId} in ${directory.mailroom.stack}, neither in the outbox nor in this inbox. Check the id; where ` +
      'its row has expired, --force resolves the message all the same.',
  );
}

function refuseLeased(row: InboxRow | undefined, consumer: string, eventId: string): void {
  const { status, leaseUntil = 0 } = row ?? {};
  if (status === 'PROCESSING' && leaseUntil >= Date.now()) throw leased(consumer, eventId, leaseUntil);
}

function leased(consumer: string, eventId: string, until: number): MailroomError {
  return new MailroomError(
    'MESSAGE_LEASED',
    `A worker of ${consumer} holds ${eventId} until ${time(until)}. Nothing was changed. Wait and repeat this; --force takes it ` +
      'away now, and what that worker is doing outside DynamoDB goes on.',
  );
}

async function record(
  session: Session,
  command: string,
  note: { readonly by: string; readonly reason: string },
  consumer: string,
  eventId: string,
  force = false,
): Promise<void> {
  const subject = `${consumer} ${eventId}${force ? ', by force' : ''}`;
  await recordOperation(session, { ...note, command, subject });
}

function report({ output }: Session, consumer: string, eventId: string, says: string, status: string) {
  output.result({ consumer, eventId, status }, () => `The message ${eventId} of ${consumer} ${says}.`);
  return EXIT.ok;
}
