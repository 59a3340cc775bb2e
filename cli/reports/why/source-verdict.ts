import { TOO_OLD } from '../../../lambdas/runtime/inbox/inbox-conditions.ts';
import { inboxState } from '../../../lambdas/runtime/inbox/inbox-state.ts';
import { isUnreadable } from '../../../lambdas/runtime/store/stored-rows.ts';
import { asClause, clipped } from '../../terminal/output.ts';
import { shell } from '../../terminal/shell.ts';
import { unreadableRow, type WhyContext, type WhyVerdict } from './event-state.ts';
import type { MessageAtSource } from './source-messages.ts';

/** A reason why an event is unproven at a consumer: it has no row. */
export function unprovenAt({ consumer: { name, from }, row }: MessageAtSource): string[] {
  return row === undefined
    ? [`${name}, to which ${from} delivers: nothing proves that it must have a row`]
    : [];
}

/** The verdict on an event at a consumer of another source; `undefined` if it is done, or without a row. */
export function sourceVerdict(
  eventId: string,
  event: string,
  { consumer: { name, from }, row: stored }: MessageAtSource,
  context: WhyContext,
): WhyVerdict | undefined {
  const { now, commandLine } = context;
  const state = inboxState(stored, now);
  const about = { eventId, consumer: name };
  const at = `${name}, which receives from ${from}`;
  if (isUnreadable(stored))
    return { ...about, ...unreadableRow(`The inbox row of ${event} at ${at}`, stored, context) };
  switch (state.is) {
    case 'rejected': {
      const { reason = 'UNKNOWN', lastError = '', runAnyway } = state.row;
      const text = `${event} was rejected by ${at} (${reason}): ${asClause(lastError)}.`;
      const again = `Publish it again to ${from} from where ${name} keeps its dead letters, or end it:`;
      const isTooOld = reason === TOO_OLD && !runAnyway;
      return {
        ...about,
        state: 'rejected',
        text: `${text} ${isTooOld ? 'If you know that it has not run, allow it:' : again}`,
        next: commandLine(
          isTooOld ? shell`messages allow ${name} ${eventId}` : shell`messages resolve ${name} ${eventId}`,
        ),
      };
    }
    case 'failed': {
      const error = clipped(state.row.lastError ?? 'unknown error');
      const text = `${event} failed at ${at}, which retries it: ${asClause(error)}.`;
      const next = commandLine(shell`messages list --failed --by cause --consumer ${name}`);
      return { ...about, state: 'retrying', text, next };
    }
    case 'leased':
    case 'abandoned':
      return { ...about, state: 'processing', text: `${event} is being processed by ${at}.`, next: null };
    default:
      return undefined;
  }
}
