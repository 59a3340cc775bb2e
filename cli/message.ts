import { Command } from 'commander';
import { MailroomError } from '../lambdas/runtime/errors.ts';
import { allowTooOld, resolveMessage } from '../lambdas/runtime/operations/message-operations.ts';
import { isEventId, outboxKeyOf } from '../lambdas/runtime/store/event-id.ts';
import { TOO_OLD } from '../lambdas/runtime/store/inbox-conditions.ts';
import { inboxState } from '../lambdas/runtime/store/inbox-state.ts';
import { recordOperation } from '../lambdas/runtime/store/operation-record.ts';
import { readable } from '../lambdas/runtime/store/stored-rows.ts';
import { messageIdArgument, reasonArgument } from './frame/arguments.ts';
import { withSession } from './frame/command.ts';
import { EXIT, type ExitCode, type Io } from './frame/io.ts';
import { time } from './frame/output.ts';
import { prose } from './frame/prose.ts';
import type { Session } from './frame/session.ts';
import { shell } from './frame/shell.ts';
import { readInbox } from './reading/message-reader.ts';
import { unreadableText } from './reading/row-text.ts';

/** An operator's decision about one message of one consumer. */
interface MessageCommand {
  readonly consumer: string;
  readonly eventId: string;
  readonly reason: string;
  readonly force?: boolean;
}

/** `mailroom message`. */
export function messageCommand(io: Io): Command {
  const allow =
    'Allows a message that was rejected as EVENT_TOO_OLD to run. Use it only if you know that the message was never ' +
    'processed. Redrive it afterwards.';
  return new Command('message')
    .description('Resolves or allows one message of one consumer.')
    .addCommand(
      decisionCommand(
        io,
        'resolve',
        'Sets a message PROCESSED without running it, because its work was done by hand.',
        resolve,
      ).option('--force', 'even if a worker holds it, its row is unreadable or its event is unknown'),
    )
    .addCommand(decisionCommand(io, 'allow', allow, allowMessage));
}

function decisionCommand(
  io: Io,
  name: string,
  description: string,
  decide: (session: Session, decided: MessageCommand) => Promise<ExitCode>,
): Command {
  return new Command(name)
    .description(description)
    .argument('<consumer>', 'the name of the consumer')
    .argument('<eventId>', 'the event id, or unreadable-<SQS message id>', messageIdArgument)
    .requiredOption('--reason <text>', 'why; stored on the row', reasonArgument)
    .action(
      withSession<[string, string], Pick<MessageCommand, 'reason' | 'force'>>(
        io,
        (session, { reason, force }, consumer, eventId) =>
          decide(session, { consumer, eventId, reason, ...(force && { force }) }),
      ),
    );
}

async function resolve(session: Session, decided: MessageCommand): Promise<ExitCode> {
  const { consumer, eventId, force } = decided;
  const { inboxRetentionDays } = session.consumer(consumer);
  const row = await readInbox(session.table, consumer, eventId, true);
  const state = inboxState(row, session.clock.now());
  if (state.is === 'absent' && force !== true) await requireEvent(session, eventId);
  if (state.is === 'processed' || state.is === 'discarded')
    return report(session, decided, `was already ${state.row.status}`, state.is);
  if (force !== true && state.is === 'unreadable') throw unreadable(decided, state.problem);
  // Without AWS's time, only resolveMessage can tell: it watches the row for a whole lease.
  if (force !== true && state.is === 'leased' && session.clockIsTrusted)
    throw leased(decided, state.until, session.clock.now());
  const by = await record(session, 'message resolve', decided);
  const result = await resolveMessage(session, { ...decided, by, inboxRetentionDays });
  if (result.status === 'leased') throw leased(decided, result.until, session.clock.now());
  if (result.status === 'unreadable') throw unreadable(decided, result.problem);
  return report(session, decided, `is ${result.status}`, result.status);
}

async function allowMessage(session: Session, decided: MessageCommand): Promise<ExitCode> {
  const { consumer, eventId } = decided;
  session.consumer(consumer);
  const row = await readInbox(session.table, consumer, eventId, true);
  // Any other message is refused, and refused changes are not recorded.
  const isTooOld = readable(row)?.reason === TOO_OLD;
  const by = isTooOld ? await record(session, 'message allow', decided) : await session.operator();
  await allowTooOld(session, { ...decided, by });
  const next = session.commandLine(shell`dlq redrive ${`consumer:${consumer}`} ${eventId} --apply`);
  return report(session, decided, 'is allowed to run. To redrive it', 'allowed', next);
}

/** Refuses unknown ids: resolving a mistyped one would have no effect and look like a success. */
async function requireEvent({ table, directory }: Session, eventId: string): Promise<void> {
  if (isEventId(eventId) && (await table.get(outboxKeyOf(eventId), { consistent: true })) !== undefined)
    return;
  throw new MailroomError(
    'NO_SUCH_EVENT',
    `Event ${eventId} is neither in the outbox of ${directory.mailroom.stack} nor in this consumer's inbox. Check the id. If its rows have ` +
      'expired, resolve the message with --force.',
  );
}

function leased({ consumer, eventId }: MessageCommand, until: number, now: number): MailroomError {
  return new MailroomError(
    'MESSAGE_LEASED',
    `A worker of ${consumer} may hold ${eventId} until ${time(until)}. Nothing was changed. Wait and repeat the command. --force takes ` +
      "the message from the worker now, but the worker's calls outside DynamoDB continue.",
    { retryAfterMs: Math.max(0, until - now) },
  );
}

function unreadable({ consumer, eventId }: MessageCommand, problem: string): MailroomError {
  return new MailroomError(
    'UNREADABLE_ROW',
    `${consumer} has a row of ${eventId} that ${unreadableText(problem)}. Nothing was changed. Run the command with the deployed ` +
      'version of cdk-mailroom. If the row was changed by hand and no worker holds it, --force sets it PROCESSED.',
  );
}

/** Records a decision before it is applied. @returns the ARN of the operator */
async function record(session: Session, command: string, decided: MessageCommand): Promise<string> {
  const { consumer, eventId, reason, force } = decided;
  const by = await session.operator();
  const subject = `${consumer} ${eventId}${force ? ', by force' : ''}`;
  await recordOperation(session, { by, reason, command, subject });
  return by;
}

function report(
  { output }: Session,
  { consumer, eventId }: MessageCommand,
  says: string,
  status: string,
  next?: string,
): ExitCode {
  const line = `Message ${eventId} of ${consumer} ${says}${next === undefined ? '.' : ':'}`;
  const lines = { line, next: next === undefined ? [] : [`  ${next}`] };
  output.result({ consumer, eventId, status }, lines, (seen) => [prose(seen.line), ...seen.next].join('\n'));
  return EXIT.ok;
}
