import { errorMessage, isMailroomError, MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { isObject, textOf } from '../../../lambdas/runtime/base/json.ts';
import type { DeliveredEvent } from '../../../lambdas/runtime/consume/message.ts';
import { checkOperatorWrites } from '../../../lambdas/runtime/consume/operator-writes.ts';
import { type CommitRequest, checkedFix, draftOf } from '../../../lambdas/runtime/consume/settle-requests.ts';
import type { Envelope } from '../../../lambdas/runtime/events/event.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import { checkedActions } from '../../../lambdas/runtime/store/dynamo/table-checks.ts';
import { isExternalEventId } from '../../../lambdas/runtime/store/external-id.ts';
import { exactJson } from '../../terminal/exact-json.ts';
import { many } from '../../terminal/output.ts';

/** The writes and events that an operator commits in place of a handler. */
export type ManualFix = Pick<CommitRequest['mailroomCommit'], 'writes' | 'events'>;

/** The event of a fixed message. */
type FixedEvent = NonNullable<CommitRequest['mailroomCommit']['cause']>;

/** The shape of the file, for its errors. */
const SHAPE =
  '{ "writes": [{ "Put": { "Item": { "PK": "…", "SK": "…" } } }], "events": [{ "type": "…", "aggregateType": "…", "aggregateId": "…", "data": {} }] }';

/**
 * Reads a manual fix, with the checks of the function that will commit it: what it would refuse is not recorded as a decision.
 *
 * @param text - JSON
 * @param service - the consumer's, which publishes the events
 * @throws `BAD_ARGUMENT`, naming the member that is wrong, `BAD_EVENT_DEFINITION`, and `BAD_WRITE` or `BAD_ITEM` for a write
 */
export function readFix(text: string, service: string): ManualFix {
  let fix: unknown;
  try {
    fix = exactJson(text);
  } catch (error) {
    if (isMailroomError(error, 'BAD_ARGUMENT'))
      throw new MailroomError('BAD_ARGUMENT', `--commit: ${error.message}`);
    throw bad(`is not JSON (${errorMessage(error)})`);
  }
  if (!isObject(fix) || Array.isArray(fix)) throw bad('is not an object');
  const { writes = [], events = [], ...others } = fix;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw bad(`has a member "${unknown}"`);
  if (!Array.isArray(writes)) throw bad('has "writes" that are not a list');
  if (!Array.isArray(events)) throw bad('has "events" that are not a list');
  if (writes.length + events.length === 0) throw bad('has neither writes nor events');
  for (const [index, write] of writes.entries()) {
    if (!isObject(write)) throw bad(`has writes[${index}] that is not an object`);
  }
  for (const [index, event] of events.entries()) {
    for (const name of ['type', 'aggregateType', 'aggregateId']) {
      if (!isObject(event) || !textOf(event[name])) throw bad(`has no text in events[${index}].${name}`);
    }
  }
  const given = checkedFix({ writes, events }, checkOperatorWrites);
  for (const event of given.events) draftOf(event, service);
  return given;
}

/**
 * Refuses a write of the Mailroom table that the consumer's own function could not make. Rows of other tables are left to the permissions
 * of the function.
 *
 * @throws `BAD_WRITE`, and `BAD_ITEM` for a write that cannot be sent
 */
export function refuseOtherKeys(
  { writes }: ManualFix,
  { name, domainKeys = [] }: ConsumerEntry,
  table: string,
): void {
  for (const [index, { kind, request }] of checkedActions(writes).entries()) {
    if (String(request.TableName ?? table).replace(/^.*\//, '') !== table) continue;
    const { PK } = (kind === 'Put' ? request.Item : request.Key) ?? {};
    if (domainKeys.some((pattern) => matches(pattern, String(PK)))) continue;
    throw new MailroomError(
      'BAD_WRITE',
      `--commit: writes[${index}] has the partition key "${String(PK)}", which is not among the domainKeys of ${name} ` +
        `(${domainKeys.join(', ') || 'none'}). Write rows of this service only, or have their owner handle an event.`,
    );
  }
}

function matches(pattern: string, key: string): boolean {
  return pattern.endsWith('*') ? key.startsWith(pattern.slice(0, -1)) : key === pattern;
}

/** Names what a fix would commit: `Put PAYMENT#1 / PAYMENT; event PaymentRefunded of Payment 1`. */
export function fixText({ writes, events }: ManualFix): string {
  const rows = checkedActions(writes).map(({ kind, request }) => {
    const { PK, SK } = (kind === 'Put' ? request.Item : request.Key) ?? {};
    return [kind, request.TableName, PK, ...(SK === undefined ? [] : ['/', SK])].filter(Boolean).join(' ');
  });
  const named = events.map(
    ({ type, aggregateType, aggregateId }) => `event ${type} of ${aggregateType} ${aggregateId}`,
  );
  return `${many(rows.length, 'write')} and ${many(named.length, 'event')}: ${[...rows, ...named].join('; ')}`;
}

/**
 * The event whose correlation id and trace the new events inherit, and whose place the fix takes. An external event begins its own chain, as
 * for a handler.
 *
 * @param event - that of the message, if it was found
 */
export function causeOf(
  eventId: string,
  event: DeliveredEvent<Envelope> | undefined,
): FixedEvent | undefined {
  if (isExternalEventId(eventId)) return { eventId, correlationId: eventId };
  return event && { ...event.envelope, source: event.bus.source };
}

function bad(problem: string): MailroomError {
  return new MailroomError('BAD_ARGUMENT', `--commit: the file ${problem}. It has the form ${SHAPE}`);
}
