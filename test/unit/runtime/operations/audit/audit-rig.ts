import { DAY_MS, MINUTE_MS } from '../../../../../lambdas/runtime/base/units.ts';
import { encodeRulePattern } from '../../../../../lambdas/runtime/bus/rule-pattern.ts';
import type { Envelope } from '../../../../../lambdas/runtime/events/event.ts';
import { type Audit, createAudit } from '../../../../../lambdas/runtime/operations/audit/audit.ts';
import { type DeployedRule, ruleName } from '../../../../../lambdas/runtime/operations/audit/audit-drift.ts';
import { repairMissing } from '../../../../../lambdas/runtime/operations/audit/audit-repair.ts';
import type { AuditReport } from '../../../../../lambdas/runtime/operations/audit/audit-report.ts';
import { deliveredEvent } from '../../../../../lambdas/runtime/operations/delivered-event.ts';
import type {
  ConsumerEntry,
  Directory,
  EntryVersion,
} from '../../../../../lambdas/runtime/operations/directory.ts';
import type { QueueMessage, Queues } from '../../../../../lambdas/runtime/operations/queues.ts';
import { mintEventId, outboxKeyOf, type RandomBytes } from '../../../../../lambdas/runtime/store/event-id.ts';
import type { InboxRow } from '../../../../../lambdas/runtime/store/inbox-row.ts';
import { inboxKey } from '../../../../../lambdas/runtime/store/keys.ts';
import type { OutboxRow } from '../../../../../lambdas/runtime/store/outbox-row.ts';
import { SCHEMA } from '../../../../../lambdas/runtime/store/row-schema.ts';
import { storedEnvelope } from '../../../../../lambdas/runtime/store/stored-envelope.ts';
import { manualClock, memoryTable } from '../../../../../testing/index.ts';

export const SHARDS = 4;

/** Queues as the audit sees them: how much each holds, and its dead letters. */
export interface FakeQueues extends Queues {
  /** How many messages a source queue holds. */
  readonly holds: Map<string, number>;
  /** Dead letters by queue. */
  readonly deadLetters: Map<string, QueueMessage[]>;
  /** Queues that do not exist. */
  readonly gone: Set<string>;
  /** Dead letters that another receiver hides. */
  readonly hidden: Set<string>;
  /** Dead letters that their last receiver hides. */
  readonly received: Set<string>;
  /** What was sent, oldest first. */
  readonly sent: { readonly url: string; readonly body: string }[];
  /** Runs before each look at how much a queue holds. */
  onDepth?: (url: string) => Promise<void>;
}

function fakeQueues(): FakeQueues {
  const all: FakeQueues = {
    holds: new Map(),
    deadLetters: new Map(),
    gone: new Set(),
    hidden: new Set(),
    received: new Set(),
    sent: [],
    depth: async (url) => {
      await all.onDepth?.(url);
      if (all.gone.has(url)) throw Object.assign(new Error('no'), { name: 'QueueDoesNotExist' });
      const waiting = all.holds.get(url) ?? all.deadLetters.get(url)?.length ?? 0;
      return {
        arn: `arn:aws:sqs:eu-west-1:123456789012:${url}`,
        waiting,
        inFlight: 0,
        retentionMs: 14 * DAY_MS,
      };
    },
    receive: async (url, { limit }) => {
      const shown = (all.deadLetters.get(url) ?? []).filter(({ messageId }) => !all.hidden.has(messageId));
      for (const { messageId } of shown.slice(0, limit)) all.received.add(messageId);
      return shown.slice(0, limit);
    },
    show: async (_url, { messageId }) => {
      all.received.delete(messageId);
    },
    send: async (url, body) => {
      all.sent.push({ url, body });
      return `sent-${all.sent.length}`;
    },
    remove: async () => {
      throw new Error('No dead letter may be removed');
    },
  };
  return all;
}

/** A consumer of the directory: it must see OrderPlaced of orders. */
export function consumerEntry(name: string, more: Partial<ConsumerEntry> = {}): ConsumerEntry {
  return {
    stack: 'mailroom-test',
    name,
    service: name,
    events: [{ source: 'orders', type: 'OrderPlaced' }],
    rule: `the-bus|${name}-rule`,
    queue: `${name}-queue`,
    deadLetterQueue: `${name}-dead`,
    undeliveredQueue: `${name}-undelivered`,
    function: name,
    maxAttempts: 5,
    inboxRetentionDays: 35,
    ...more,
  };
}

/** A Mailroom without AWS, and an audit of it. The time is noon; nothing moves by itself. */
export function auditRig(
  consumers: readonly ConsumerEntry[] = [consumerEntry('payments'), consumerEntry('inventory')],
  random?: RandomBytes,
) {
  const clock = manualClock(Date.UTC(2026, 0, 1, 12));
  const table = memoryTable({ clock });
  const queues = fakeQueues();
  const directory: Directory = {
    mailroom: {
      stack: 'mailroom-test',
      table: table.name,
      bus: 'the-bus',
      shards: SHARDS,
      streamFunction: 'stream',
      sweepFunction: 'sweep',
      failureQueue: 'failures',
    },
    consumers,
  };
  const rules = new Map(
    consumers.map((consumer): [string, DeployedRule] => [
      ruleName(consumer) ?? '',
      {
        enabled: true,
        pattern: JSON.stringify(encodeRulePattern(consumer.events)),
        targets: [
          {
            id: 'Queue',
            arn: `arn:aws:sqs:eu-west-1:123456789012:${consumer.queue}`,
            deadLetterQueue: undefined,
          },
        ],
      },
    ]),
  );
  const ages = new Map<string, number>();
  const atLeastMs = new Map<string, number>();
  let letters = 0;

  /** Writes an event's outbox row. @param agoMs - how long ago it was minted and published */
  async function event(
    agoMs: number,
    row: Partial<OutboxRow> = {},
    envelope: Partial<Envelope> = {},
    shards = SHARDS,
  ): Promise<Envelope> {
    const now = clock.now() - agoMs;
    const eventId = mintEventId(now, shards, random);
    const type = row.type ?? 'OrderPlaced';
    const written: Envelope = {
      eventId,
      type,
      version: 1,
      aggregateType: 'Order',
      aggregateId: 'order-1',
      occurredAt: now,
      correlationId: eventId,
      data: {},
      ...envelope,
    };
    const item = {
      ...outboxKeyOf(eventId),
      schema: SCHEMA,
      status: 'PUBLISHED',
      leaseUntil: now,
      attempts: 0,
      source: 'orders',
      type,
      publishedAt: now,
    };
    const Item = { ...item, ...storedEnvelope(JSON.stringify(written), item), ...row };
    await table.write({ Put: { Item } });
    return written;
  }

  /** Writes a consumer's inbox row. */
  async function inbox(
    consumer: string,
    eventId: string,
    status: InboxRow['status'] = 'PROCESSED',
    more: Partial<InboxRow> = {},
  ): Promise<void> {
    const until = clock.now() + 30_000;
    const held =
      status === 'PROCESSING' ? { leaseUntil: until } : status === 'FAILED' ? { retryAt: until } : {};
    const row = {
      ...inboxKey(consumer, eventId),
      schema: SCHEMA,
      status,
      fence: 'f',
      attempts: 1,
      ...held,
      ...more,
    };
    await table.write({ Put: { Item: row } });
  }

  /** Puts a dead letter of an event into a queue. */
  function letter(queue: string, envelope: Envelope): QueueMessage {
    letters += 1;
    const made: QueueMessage = {
      messageId: `letter-${letters}`,
      receiptHandle: `handle-${letters}`,
      body: deliveredEvent(
        { source: 'orders', type: envelope.type, envelope: JSON.stringify(envelope) },
        { account: '123456789012', region: 'eu-west-1', time: clock.now() },
      ),
      sentAt: clock.now(),
      attributes: {},
    };
    queues.deadLetters.set(queue, [...(queues.deadLetters.get(queue) ?? []), made]);
    return made;
  }

  const versions = new Map<string, EntryVersion[]>();

  const deps = {
    table,
    directory,
    versions: async ({ name }: ConsumerEntry) => {
      const found = versions.get(name);
      if (found === undefined) throw Object.assign(new Error('no'), { name: 'AccessDeniedException' });
      return found;
    },
    queues,
    clock,
    rules: {
      describe: async (bus: string, rule: string) => (bus === 'the-bus' ? rules.get(rule) : undefined),
    },
    ages: {
      oldestAt: async (url: string) => ages.get(url),
      atLeastMs: async (url: string) => atLeastMs.get(url) ?? 0,
    },
  };

  /** Audits the last hour. */
  function run(range: Partial<Parameters<Audit['run']>[0]> = {}): Promise<AuditReport> {
    const until = clock.now() + 1;
    return createAudit(deps).run({ since: until - 60 * MINUTE_MS, until, ...range });
  }

  return {
    clock,
    table,
    queues,
    directory,
    deps,
    /** The deployed rules, by name. */
    rules,
    /** The versions of a consumer's entry, oldest first, by its name; one without any may not be read. */
    versions,
    /** From when the oldest message of a queue is, by its URL. */
    ages,
    /** For how long nothing can be known of a message, by its queue's URL. */
    atLeastMs,
    event,
    inbox,
    letter,
    run,
    repair: (report: AuditReport) => repairMissing(deps, report.missing, { by: 'ada', reason: 'a test' }),
  };
}
