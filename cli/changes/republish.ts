import { errorCode, MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { jsonObject } from '../../lambdas/runtime/base/json.ts';
import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import { type InboxState, inboxState } from '../../lambdas/runtime/inbox/inbox-state.ts';
import type { ConsumerEntry, Directory } from '../../lambdas/runtime/operations/directory.ts';
import { consumersOf } from '../../lambdas/runtime/operations/subscribed-events.ts';
import type { RepublishReport } from '../../lambdas/runtime/relay/republish.ts';
import { recordOperation } from '../../lambdas/runtime/store/operation-record.ts';
import type { OutboxRow } from '../../lambdas/runtime/store/outbox-row.ts';
import { isUnreadable, readable } from '../../lambdas/runtime/store/stored-rows.ts';
import type { Deployment } from '../deployment/deployment.ts';
import { wholeEventId } from '../deployment/event-prefix.ts';
import { invoke } from '../deployment/invoke.ts';
import { type Place, placeOf, placeText } from '../deployment/place.ts';
import { unreadableText } from '../deployment/row-text.ts';
import { eachOf, isNotDue } from '../deployment/rows-reader.ts';
import { isTooOld } from '../reports/dead-letters/redrive-plan.ts';
import { inTime } from '../reports/why/event-state.ts';
import { applyWords, type ChangeOptions } from '../terminal/change.ts';
import { when } from '../terminal/listing.ts';
import { clipped } from '../terminal/output.ts';
import { prose } from '../terminal/prose.ts';
import { shell } from '../terminal/shell.ts';
import type { OperatorChange } from './change.ts';
import { outboxChangesOf } from './outbox-changes.ts';

export interface RepublishOptions extends ChangeOptions {
  readonly eventId: string;
}

/** An event to publish again, and its effect at each consumer. */
interface RepublishPlan {
  readonly place: Place;
  readonly eventId: string;
  readonly row: OutboxRow;
  readonly consumers: readonly RepublishEffect[];
}

/** `mailroom events republish`. */
export const republish: OperatorChange<
  RepublishOptions,
  RepublishPlan,
  true,
  ReturnType<typeof republishJson>
> = {
  plan: async (deployment, options) => {
    const { directory, commandLine } = deployment;
    const { eventId, row } = await readPublished(deployment, options.eventId);
    const { bus } = directory.mailroom;
    // EventBridge accepts entries for a bus that does not exist, and drops them.
    if (!(await deployment.resources.hasBus(bus))) {
      throw new MailroomError(
        'NO_BUS',
        `The bus ${bus} does not exist, so nothing would arrive. Nothing was changed. \`${commandLine(shell`status`)}\` prints the command that restores it.`,
      );
    }
    const { neighbors = [] } = deployment;
    const elsewhere = await eachOf(neighbors, (room) => effectsElsewhere(room, eventId, row));
    const consumers = [...(await effectsOf(deployment, eventId, row)), ...elsewhere.flat()];
    return { place: await placeOf(deployment), eventId, row, consumers };
  },
  apply: async (deployment, { eventId, row }, { reason }) => {
    const { clients, directory } = deployment;
    const { sweepFunction } = directory.mailroom;
    const note = { by: await deployment.operator(), reason };
    await recordOperation(deployment, { ...note, command: 'events republish', subject: eventId });
    const sentAt = Math.max(row.publishedAt ?? 0, row.resentAt ?? 0);
    const prepared = await outboxChangesOf(deployment).publishAgain(eventId, sentAt, note);
    if (prepared === 'absent') throw expired(deployment, eventId);
    if (prepared === 'queued') return untilPublished(deployment, eventId, sentAt);
    const report = await invoke<Partial<RepublishReport> | null>(clients.lambda, sweepFunction, {
      republish: eventId,
    });
    requireRepublished(report, sweepFunction, eventId);
    return true;
  },
  result: (_deployment, { plan, made = false }) => ({ json: republishJson(plan, made) }),
  text: ({ commandLine, clock }, { plan: { place, eventId, row, consumers }, made: applied }, options) => {
    const name = `${clipped(row.type)} ${eventId}`;
    return [
      prose(placeText(place)),
      prose(
        applied
          ? `Published ${name} again, under the same id.`
          : `Would publish ${name} again, under the same id. It was published ${when(row.publishedAt ?? null, clock.now())}.`,
      ),
      ...(consumers.length === 0 ? ['  No consumer subscribes to it.'] : []),
      ...consumers.map(({ consumer, text }) => prose(`  ${consumer}: ${text}`, 4)),
      prose('Targets of the bus other than these consumers receive it a second time.'),
      ...(applied
        ? [prose('To follow it:'), `  ${commandLine(shell`why ${eventId}`)}`]
        : [
            'Nothing was changed. To publish it:',
            `  ${commandLine(shell`events republish ${[eventId, ...applyWords(options)]}`)}`,
          ]),
    ].join('\n');
  },
};

function republishJson({ place, eventId, row: { type }, consumers }: RepublishPlan, applied: boolean) {
  const states = consumers.map(({ consumer, state }) => [consumer, state] as const);
  return { ...place, eventId, type, applied, consumers: Object.fromEntries(states) };
}

/** @throws `NO_SUCH_EVENT`, `UNREADABLE_ROW`, `NOT_PUBLISHED` */
async function readPublished(
  deployment: Deployment,
  given: string,
): Promise<{ readonly eventId: string; readonly row: OutboxRow }> {
  const eventId = (await wholeEventId(deployment, given)) ?? given;
  const row = await deployment.stored.outbox.byId(eventId, true);
  if (row === undefined) throw expired(deployment, eventId);
  if (isUnreadable(row)) {
    throw new MailroomError(
      'UNREADABLE_ROW',
      `The outbox row of ${eventId} ${unreadableText(row.unreadable)}. Nothing was changed. Run the command with the deployed version of cdk-mailroom.`,
    );
  }
  if (row.publishedBy === 'cdc')
    throw new MailroomError(
      'NOT_PUBLISHED',
      `Event ${eventId} is left to change data capture, and no relay publishes it. Nothing was changed. To deliver it again, rewind the group of its consumer in Kafka.`,
    );
  if (row.status === 'PUBLISHED') return { eventId, row };
  const now = deployment.clock.now();
  const todo = {
    PENDING: isNotDue({ ...row }, now)
      ? `It is scheduled and due ${inTime(row.dueAt ?? now, now)}. The relay will publish it then.`
      : `The relay will publish it. \`${deployment.commandLine(shell`why ${eventId}`)}\` shows when.`,
    DEAD: `Requeue it: \`${deployment.commandLine(shell`dlq redrive dead ${eventId}`)}\`.`,
    DISCARDED: 'Its producer must write a new event.',
    CANCELLED: 'That is final: its producer must write a new event.',
  }[row.status];
  throw new MailroomError(
    'NOT_PUBLISHED',
    `Event ${eventId} is ${row.status}; only PUBLISHED events are published again. Nothing was changed. ${todo}`,
  );
}

function expired({ directory, commandLine }: Deployment, eventId: string): MailroomError {
  return new MailroomError(
    'NO_SUCH_EVENT',
    `No outbox row of ${directory.mailroom.stack} has the event id "${eventId}". Nothing was changed. An external event has no outbox row, and a published ` +
      `event's row expires after 7 days by default, with its payload; its producer must write a new one. To find an id: ` +
      `\`${commandLine(shell`events list --published`)}\`.`,
  );
}

/** @throws `OLD_RELAY` if the deployed sweep does not support the request, `NOT_REPUBLISHED` if the bus refused the event */
function requireRepublished(
  report: Partial<RepublishReport> | null,
  sweepFunction: string,
  eventId: string,
): void {
  if (report?.republish !== eventId) {
    throw new MailroomError(
      'OLD_RELAY',
      `The function ${sweepFunction} was built with an older Mailroom and cannot publish an event again. It was not published. Deploy the Mailroom's stack, then repeat the command.`,
    );
  }
  const { refusal } = report;
  if (refusal === undefined) return;
  throw new MailroomError(
    'NOT_REPUBLISHED',
    `The bus did not accept event ${eventId}: ${refusal.code}: ${refusal.message.replace(/\.$/, '')}. After a timeout it may have arrived. Repeat the command: a duplicate is absorbed.`,
  );
}

/** A relay of a database publishes what is queued within a second, or, as a function, within a minute. */
const PUBLISH_WAIT_MS = 2 * MINUTE_MS;

const LOOK_EVERY_MS = 1_000;

/** Waits until the relay of a database has published a queued event. @throws `NOT_REPUBLISHED`, `NO_SUCH_EVENT` */
async function untilPublished(deployment: Deployment, eventId: string, sentAt: number): Promise<true> {
  const { clock, stored, terminal, commandLine } = deployment;
  const endsBy = clock.now() + PUBLISH_WAIT_MS;
  for (;;) {
    const found = await stored.outbox.byId(eventId, true);
    if (found === undefined) throw expired(deployment, eventId);
    const { status, publishedAt = 0, lastError } = readable(found) ?? {};
    if (status === 'PUBLISHED' && publishedAt > sentAt) return true;
    const isWaiting = status === 'PENDING' || status === 'PUBLISHED';
    if (isWaiting && clock.now() < endsBy && !terminal.signal.aborted) {
      await clock.sleep(LOOK_EVERY_MS, terminal.signal);
      continue;
    }
    throw new MailroomError(
      'NOT_REPUBLISHED',
      `No relay has published event ${eventId} again: it is ${status ?? 'unreadable'}. Its last error: ${clipped(lastError ?? 'none')}. A PENDING event stays in the queue, and a relay publishes it. \`${commandLine(shell`why ${eventId}`)}\` shows what it waits for.`,
    );
  }
}

/** The effect of another message of the event at a consumer. */
interface RepublishEffect {
  readonly consumer: string;
  readonly state: InboxState['is'];
  /** A predicate whose subject is the consumer. */
  readonly text: string;
}

/** The effects at the consumers of another Mailroom on the bus, whose rows the caller may not be allowed to read. */
async function effectsElsewhere(
  room: Omit<Deployment, 'neighbors'>,
  eventId: string,
  row: OutboxRow,
): Promise<readonly RepublishEffect[]> {
  const { stack } = room.directory.mailroom;
  const named = (effect: RepublishEffect) => ({ ...effect, consumer: `${stack}/${effect.consumer}` });
  try {
    return (await effectsOf(room, eventId, row)).map(named);
  } catch (error) {
    const text = `has an inbox that cannot be read here (${errorCode(error)}), and absorbs the event if it has processed it`;
    return subscribersOf(room.directory, row).map(({ name: consumer }) =>
      named({ consumer, state: 'unreadable', text }),
    );
  }
}

function subscribersOf(
  directory: Directory,
  { source, type, publishedBy, envelope }: OutboxRow,
): readonly ConsumerEntry[] {
  return consumersOf(directory, { source, type, publishedBy, data: () => jsonObject(envelope)?.data });
}

async function effectsOf(
  { directory, stored, clock }: Omit<Deployment, 'neighbors'>,
  eventId: string,
  row: OutboxRow,
): Promise<readonly RepublishEffect[]> {
  return eachOf(subscribersOf(directory, row), async (consumer: ConsumerEntry): Promise<RepublishEffect> => {
    const inbox = await stored.inbox.byEvent(consumer.name, eventId, true);
    const history = await stored.inbox.history(consumer.name);
    const state = inboxState(inbox, clock.now()).is;
    const old = isTooOld({ row: inbox, eventId }, consumer, history, clock.now());
    const text = old ? 'rejects it as too old: it may have run before' : EFFECTS[state];
    return { consumer: consumer.name, state, text };
  });
}

const EFFECTS: Readonly<Record<InboxState['is'], string>> = {
  absent: 'has no row of it, and processes it once, whichever message arrives first',
  processed: 'has processed it, and absorbs the duplicate',
  discarded: 'absorbs it: an operator discarded its message',
  rejected: 'has rejected it, and tries it again, as after a redrive',
  failed: 'retries it already, and absorbs the duplicate once it is processed',
  abandoned: 'retries it already, and absorbs the duplicate once it is processed',
  leased: 'is processing it, and absorbs the duplicate once it is processed',
  unreadable: 'has a row of it that cannot be read, and leaves the message in its queue',
};
