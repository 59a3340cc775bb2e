import pMap from 'p-map';
import { errorCode, errorMessage } from '../../base/errors.ts';
import { markResent } from '../../store/dynamo/outbox-operator.ts';
import { type Note, type OperationDeps, recordOperation } from '../../store/operation-record.ts';
import type { OutboxRow } from '../../store/outbox-row.ts';
import { isUnreadable } from '../../store/stored-rows.ts';
import { depthOf } from '../dead-letters.ts';
import { deliveredEvent } from '../delivered-event.ts';
import { type ConsumerEntry, type Directory, deployWords } from '../directory.ts';
import { dynamoOutboxRows, type OutboxRows } from '../outbox-rows.ts';
import type { Queues } from '../queues.ts';
import type { MissingEvent } from './audit-ledger.ts';

/** Dependencies of {@link repairMissing}. */
export interface RepairDeps extends OperationDeps {
  readonly directory: Directory;
  readonly queues: Pick<Queues, 'depth' | 'send'>;
  /** @default the rows in the table */
  readonly stored?: { readonly outbox: OutboxRows } | undefined;
  /** Records that an event is sent again; returns `false` if its row has expired. @default in the table */
  readonly outboxChanges?: { markResent(eventId: string, note: Note): Promise<boolean> } | undefined;
}

/** A missing event that cannot be sent, and the reason. */
export type UnsentEvent = MissingEvent & { readonly why: string };

/** The plan of a repair. */
export interface RepairPlan {
  readonly toSend: readonly MissingEvent[];
  readonly unsent: readonly UnsentEvent[];
}

/** The results of a repair. */
export interface Repair {
  /** The events that were sent to their consumers. */
  readonly sent: readonly MissingEvent[];
  readonly unsent: readonly UnsentEvent[];
}

/** The maximum number of concurrent sends. */
const SENDS_AT_ONCE = 8;

/**
 * Checks which missing events a repair could send. It changes nothing.
 *
 * @example
 * ```ts
 * const { toSend, unsent } = await planRepair({ table, directory, queues }, report.missing);
 * ```
 */
export async function planRepair(
  deps: Pick<RepairDeps, 'table' | 'stored' | 'directory' | 'queues'>,
  missing: readonly MissingEvent[],
): Promise<RepairPlan> {
  const plans = await Promise.all(
    deps.directory.consumers.map((consumer) => planConsumer(deps, consumer, missing, unreadBecause)),
  );
  return { toSend: plans.flatMap(({ toSend }) => toSend), unsent: plans.flatMap(({ unsent }) => unsent) };
}

/**
 * Sends each missing event to the queue of only the consumer that never received it, in the form in which the bus would have
 * delivered it. The repair is recorded first. Sending an event twice is harmless: the consumer's inbox absorbs the duplicate.
 *
 * @param missing - the findings of an audit: `report.missing`
 * @param command - of the record
 * @throws the first error, if none was sent
 *
 * @example
 * ```ts
 * const { sent } = await repairMissing({ table, directory, queues }, report.missing, { by: 'ada', reason: 'the rule had drifted' });
 * ```
 */
export async function repairMissing(
  deps: RepairDeps,
  missing: readonly MissingEvent[],
  note: Note,
  command = 'audit --repair',
): Promise<Repair> {
  const sent: MissingEvent[] = [];
  const unsent: UnsentEvent[] = [];
  const failures: unknown[] = [];
  // A failure of one event does not stop the others, of which the operator would not know whether they were sent.
  const failed = (error: unknown): string => {
    failures.push(error);
    return `it could not be sent: ${errorCode(error)}: ${errorMessage(error)}`;
  };
  for (const consumer of deps.directory.consumers) {
    const plan = await planConsumer(deps, consumer, missing, failed);
    unsent.push(...plan.unsent);
    const [first] = plan.toSend;
    if (first === undefined) continue;
    const number = plan.toSend.length;
    const events =
      number === 1 ? `event, ${first.eventId}` : `events, ${first.eventId} to ${plan.toSend.at(-1)?.eventId}`;
    const subject = `${consumer.name}: ${number} missing ${events}`;
    try {
      await recordOperation(deps, { ...note, command, subject });
    } catch (error) {
      const why = failed(error);
      unsent.push(...plan.toSend.map((event) => ({ ...event, why })));
      continue;
    }
    const [, , , region = '', account = ''] = plan.queueArn.split(':');
    await pMap(
      plan.toSend,
      async (event) => {
        const why = await sendAgain(deps, consumer, event, { region, account, note }).catch(failed);
        if (why === undefined) sent.push(event);
        else unsent.push({ ...event, why });
      },
      { concurrency: SENDS_AT_ONCE },
    );
  }
  if (sent.length === 0 && failures.length > 0) throw failures[0];
  return { sent, unsent };
}

function unreadBecause(error: unknown): string {
  return `it could not be read: ${errorCode(error)}: ${errorMessage(error)}`;
}

/**
 * The events of one consumer, in the order of the audit.
 *
 * @param failed - the reason of those of which the queue or the row could not be read: they do not stop the others
 */
async function planConsumer(
  deps: Pick<RepairDeps, 'table' | 'stored' | 'queues'>,
  consumer: ConsumerEntry,
  missing: readonly MissingEvent[],
  failed: (error: unknown) => string,
): Promise<RepairPlan & { readonly queueArn: string }> {
  const events = missing.filter((event) => event.consumer === consumer.name);
  let depth: Awaited<ReturnType<typeof depthOf>>;
  try {
    depth = events.length === 0 ? undefined : await depthOf(deps.queues, consumer.queue);
  } catch (error) {
    const why = failed(error);
    return { queueArn: '', toSend: [], unsent: events.map((event) => ({ ...event, why })) };
  }
  if (depth === undefined) {
    const why = `its queue does not exist; \`${deployWords(consumer).join(' ')}\` restores it`;
    return { queueArn: '', toSend: [], unsent: events.map((event) => ({ ...event, why })) };
  }
  const judged = await pMap(
    events,
    async (event) => ({
      event,
      why: await readSendable(deps, event.eventId).then(({ why }) => why, failed),
    }),
    { concurrency: SENDS_AT_ONCE },
  );
  return {
    queueArn: depth.arn,
    toSend: judged.flatMap(({ event, why }) => (why === undefined ? [event] : [])),
    unsent: judged.flatMap(({ event, why }) => (why === undefined ? [] : [{ ...event, why }])),
  };
}

async function sendAgain(
  deps: RepairDeps,
  consumer: ConsumerEntry,
  { eventId, publishedAt }: MissingEvent,
  { note, ...place }: { readonly region: string; readonly account: string; readonly note: Note },
): Promise<string | undefined> {
  const { row, why } = await readSendable(deps, eventId);
  if (row === undefined) return why;
  const isMarked =
    (await deps.outboxChanges?.markResent(eventId, note)) ?? (await markResent(deps, eventId)) !== undefined;
  if (!isMarked) return EXPIRED;
  await deps.queues.send(consumer.queue, deliveredEvent(row, { ...place, time: publishedAt }));
  return undefined;
}

const EXPIRED = 'its outbox row has expired, and its payload with it';

/** Reads an event's outbox row, or why it cannot be sent. */
async function readSendable(
  { table, stored }: Pick<RepairDeps, 'table' | 'stored'>,
  eventId: string,
): Promise<
  { readonly row: OutboxRow; readonly why?: undefined } | { readonly row?: undefined; readonly why: string }
> {
  const { outbox } = stored ?? { outbox: dynamoOutboxRows(table) };
  const row = await outbox.byId(eventId, true);
  if (row === undefined) return { why: EXPIRED };
  return isUnreadable(row) ? { why: `its outbox row cannot be read: ${row.unreadable}` } : { row };
}
