import { DATABASE_NAMES, type DatabaseEngine } from '../../../lambdas/runtime/base/database-engine.ts';
import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { unreadableText } from '../../deployment/row-text.ts';
import { time } from '../../terminal/times.ts';
import type { MessageDecision } from './message-decision.ts';

/** A worker may hold the message. */
export function leased({ consumer, eventId }: MessageDecision, until: number, now: number): MailroomError {
  return new MailroomError(
    'MESSAGE_LEASED',
    `A worker of ${consumer} may hold ${eventId} until ${time(until)}. Nothing was changed. Wait and repeat the command. --force takes ` +
      "the message from the worker now, but the worker's calls to other services continue.",
    { retryAfterMs: Math.max(0, until - now) },
  );
}

/** The row of the message cannot be read. */
export function unreadable({ consumer, eventId, commit }: MessageDecision, problem: string): MailroomError {
  const options = commit === undefined ? '--force' : '--force and without --commit';
  return new MailroomError(
    'UNREADABLE_ROW',
    `${consumer} has a row of ${eventId} that ${unreadableText(problem)}. Nothing was changed. Run the command with the deployed ` +
      `version of cdk-mailroom. If the row was changed by hand, correct the attribute: the message then continues. Only if its work is done and no worker ` +
      `holds it, resolve it with ${options}: it is set PROCESSED without running.`,
  );
}

/** The row that knew the effects of the message cannot be read, or is deleted. */
export function effectsUnknown({ consumer, eventId }: MessageDecision, isRowDeleted: boolean): MailroomError {
  const what = isRowDeleted ? 'was deleted by hand' : 'cannot be read';
  return new MailroomError(
    'EFFECTS_UNCHECKED',
    `The row of ${eventId} at ${consumer} ${what}, so it cannot tell which side effects were started. Nothing was changed. Find out from the ` +
      'logs and the providers whether any has happened; then repeat the command with --effects-checked.',
  );
}

/** The consumer's function refused the fix. */
export function fixRefused(
  { consumer, eventId }: MessageDecision,
  { code, message }: { readonly code: string; readonly message: string },
): MailroomError {
  return new MailroomError(
    'FIX_REFUSED',
    `The function of ${consumer} refused to commit the fix of ${eventId}: ${code}: ${message} Nothing was changed.`,
  );
}

/** The inbox is in a database, where a decision and writes in DynamoDB do not commit together. */
export function commitsNoWrites(
  { consumer, eventId }: MessageDecision,
  engine: DatabaseEngine,
): MailroomError {
  return new MailroomError(
    'NOT_IN_DATABASE',
    `The inbox of ${consumer} is in ${DATABASE_NAMES[engine]}, where --commit takes events, but no writes. Nothing was changed. Make the writes in a transaction of your own, ` +
      `and leave them out of the file that resolves ${eventId}.`,
  );
}
