import { isUnreadable } from '../../lambdas/runtime/store/stored-rows.ts';
import { clipped, duration } from '../frame/output.ts';
import { shell } from '../frame/shell.ts';
import { STUCK_MS } from '../status/status-report.ts';
import { ofMessage } from './message-verdict.ts';
import { bornAt, type Trace, type TracedEvent } from './trace-reader.ts';
import {
  hours,
  inTime,
  nameOf,
  needsSomebody,
  ofUnreadable,
  type Verdict,
  type VerdictContext,
  worstFirst,
} from './verdict.ts';

/** Says of a chain what its reader has to know first. */
export function verdictOf({ events }: Trace, context: VerdictContext): Verdict {
  const all = events
    .flatMap((event) => [
      ofOutbox(event, context),
      ...event.messages.map((message) => ofMessage(event, message, context)),
    ])
    .filter((verdict) => verdict !== undefined);
  const [worst, ...others] = all.sort(worstFirst);
  const [first] = events;
  if (worst === undefined || worst.state === 'processed') return allProcessed(events, first?.eventId ?? '');
  const also = needsSomebody(worst) ? others.filter(needsSomebody).length : 0;
  if (also === 0) return worst;
  return {
    ...worst,
    text: `${worst.text} ${also} more of this chain ${also === 1 ? 'needs' : 'need'} somebody, see below.`,
  };
}

function allProcessed(events: readonly TracedEvent[], eventId: string): Verdict {
  const [first, ...caused] = events;
  const name = first === undefined ? eventId : nameOf(first);
  const consumers = events.flatMap(({ messages }) => messages).length;
  const chain =
    caused.length === 0
      ? name
      : `${name} and the ${caused.length} event${caused.length === 1 ? '' : 's'} after it`;
  const text =
    consumers === 0
      ? `${chain}: published. No consumer has to see ${caused.length === 0 ? 'it' : 'them'}.`
      : `${chain}: published, and processed by every consumer that has to see ${caused.length === 0 ? 'it' : 'them'}.`;
  return { state: 'processed', eventId, text, next: null };
}

/** What stands in the outbox; nothing to say of what was published, or has expired. */
function ofOutbox(event: TracedEvent, context: VerdictContext): Verdict | undefined {
  const { now, commandLine } = context;
  const { eventId, row } = event;
  if (isUnreadable(row))
    return { eventId, ...ofUnreadable(`The outbox row of ${nameOf(event)}`, row.unreadable, row, context) };
  const error = row?.lastError === undefined ? '' : `: ${clipped(row.lastError)}`;
  const name = nameOf(event);
  if (row?.status === 'DEAD') {
    const text = `${name} is DEAD: it could not be published in ${row.attempts} attempts${error}. Nobody tries again.`;
    return { state: 'dead', eventId, text, next: commandLine(shell`dead requeue ${eventId} --reason "why"`) };
  }
  if (row?.status === 'DISCARDED') {
    return {
      state: 'discarded',
      eventId,
      text: `${name} was discarded by ${clipped(row.discardedBy ?? 'an operator')}.`,
      next: null,
    };
  }
  if (row?.status !== 'PENDING') return undefined;
  if (context.sources !== undefined && !context.sources.includes(row.source)) {
    const text =
      `${name} waits: its source is "${clipped(row.source)}", which no producer of this Mailroom declares, so the relay does not ` +
      `publish it. Declared are: ${context.sources.map((source) => clipped(source)).join(', ')}. If the event is genuine, declare the source and deploy; it is ` +
      'then published. If not, someone forged it: see docs/operating.md.';
    return { state: 'undeclared', eventId, text, next: commandLine(shell`status`) };
  }
  const age = now - Math.max(bornAt(event), row.requeuedAt ?? 0);
  const again = `It is tried again ${inTime(row.leaseUntil, now)}`;
  const failing = row.lastError === undefined ? '' : ` Its last attempt failed${error}. ${again}.`;
  if (age > STUCK_MS) {
    const text = `${name} has been waiting to be published for ${duration(age)}.${failing || ' The sweep should have done it by now.'}`;
    return {
      state: 'stuck',
      eventId,
      text,
      next: commandLine(shell`sweep --since ${hours(now - bornAt(event))}`),
    };
  }
  if (row.lastError === undefined) {
    const text = `${name} was committed ${duration(age)} ago and is being published.`;
    return { state: 'publishing', eventId, text, next: null };
  }
  const text =
    `${name} could not be published, ${row.attempts} attempts so far${error}. ${again}, then less and less often; when its own ` +
    'attempts are spent it is DEAD. What is the fault of the bus costs it none.';
  return { state: 'retrying', eventId, text, next: commandLine(shell`status`) };
}
