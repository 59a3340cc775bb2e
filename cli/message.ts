import { Command } from 'commander';
import { MailroomError } from '../lambdas/runtime/errors.ts';
import { allowTooOld, resolveMessage } from '../lambdas/runtime/operations/message-operations.ts';
import { isEventId, outboxKeyOf } from '../lambdas/runtime/store/event-id.ts';
import { TOO_OLD } from '../lambdas/runtime/store/inbox-conditions.ts';
import { inboxState } from '../lambdas/runtime/store/inbox-state.ts';
import { recordOperation } from '../lambdas/runtime/store/operation-record.ts';
import { type InboxRow, inboxKey } from '../lambdas/runtime/store/rows.ts';
import { readable, readInboxRow, type UnreadableRow } from '../lambdas/runtime/store/stored-rows.ts';
import { messageIdArgument, reasonArgument } from './frame/arguments.ts';
import { withSession } from './frame/command.ts';
import { EXIT } from './frame/exit-code.ts';
import type { Io } from './frame/io.ts';
import { time } from './frame/output.ts';
import type { Session } from './frame/session.ts';
import { shell } from './frame/shell.ts';
import { unreadableText } from './reading/row-text.ts';

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
          const state = inboxState(row, session.clock.now());
          if (state.is === 'processed' || state.is === 'discarded')
            return report(session, name, eventId, `was ${state.row.status} before`, state.is);
          if (force !== true && state.is === 'unreadable') throw unreadable(name, eventId, state.problem);
          // Without AWS's time only the look at the row that resolves it can tell.
          if (force !== true && state.is === 'leased' && session.clockIsTrusted)
            throw leased(name, eventId, state.until);
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
          if (result.status === 'unreadable') throw unreadable(name, eventId, result.problem);
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
      if (readable(row)?.reason === TOO_OLD)
        await record(session, 'message allow', { by, reason }, name, eventId);
      await allowTooOld(session, { consumer: name, eventId, by, reason });
      const next = session.commandLine(shell`dlq redrive ${`consumer:${name}`} --letter ${eventId} --apply`);
      return report(session, name, eventId, `is allowed to run. To let it: ${next}`, 'allowed');
    }),
  );
}

async function inboxRow(
  { table }: Session,
  consumer: string,
  eventId: string,
): Promise<InboxRow | UnreadableRow | undefined> {
  return readInboxRow(await table.get(inboxKey(consumer, eventId), { consistent: true }));
}

/** An id that was mistyped would be resolved for nobody, and whoever typed it would believe that it was done. */
async function requireEvent(
  { table, directory }: Session,
  row: InboxRow | UnreadableRow | undefined,
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

function leased(consumer: string, eventId: string, until: number): MailroomError {
  return new MailroomError(
    'MESSAGE_LEASED',
    `A worker of ${consumer} may hold ${eventId} until ${time(until)}. Nothing was changed. Wait and repeat this; --force takes it ` +
      'away now, and what that worker is doing outside DynamoDB goes on.',
  );
}

function unreadable(consumer: string, eventId: string, problem: string): MailroomError {
  return new MailroomError(
    'UNREADABLE_ROW',
    `The row of ${eventId} at ${consumer} ${unreadableText(problem)}. Nothing was changed. Use the command of the version that is ` +
      'deployed. If somebody changed the row by hand and no worker holds it, --force sets it PROCESSED.',
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
  output.result(
    { consumer, eventId, status },
    `The message ${eventId} of ${consumer} ${says}.`,
    (line) => line,
  );
  return EXIT.ok;
}
