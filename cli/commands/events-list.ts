import { Command, Option } from 'commander';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { DAY_MS, HOUR_MS } from '../../lambdas/runtime/base/units.ts';
import { DUE_AHEAD_MAX_MS } from '../../lambdas/runtime/outbox/event-draft.ts';
import type { Deployment } from '../deployment/deployment.ts';
import {
  type EventChoice,
  type HistoryEvent,
  readHistory,
  readScheduled,
  readUnpublished,
  type ScheduledEvent,
  type UnpublishedEvent,
} from '../reports/events/list-events.ts';
import { countArgument, durationArgument } from '../terminal/arguments.ts';
import { type ExportFormat, exported } from '../terminal/export.ts';
import type { Io } from '../terminal/io.ts';
import {
  byCause,
  type Cause,
  causesText,
  MORE_GROUPED,
  MORE_LISTED,
  moreText,
  nextTime,
  when,
} from '../terminal/listing.ts';
import { clipped, detailedTable, many } from '../terminal/output.ts';
import { paint } from '../terminal/paint.ts';
import { prose } from '../terminal/prose.ts';
import { type ShellText, shell } from '../terminal/shell.ts';
import { type Report, reportOf } from '../terminal/terminal.ts';
import { duration, time } from '../terminal/times.ts';
import { type WindowOptions, windowOf } from '../terminal/window.ts';
import { reporting } from './command.ts';
import { formatOption, windowOptions } from './options.ts';

interface EventsOptions extends Partial<WindowOptions>, EventChoice {
  readonly published?: boolean;
  readonly scheduled?: boolean;
  /** Milliseconds. @default 24 hours */
  readonly within?: number;
  readonly pending?: boolean;
  readonly dead?: boolean;
  readonly by?: 'cause' | 'source';
  readonly format?: ExportFormat;
}

/** The columns of `--format csv` that both lists of whole events have. */
const NAME_COLUMNS = {
  eventId: true,
  type: true,
  source: true,
  aggregateType: true,
  aggregateId: true,
  correlationId: true,
  causationId: true,
  occurredAt: true,
} as const;

/** The columns of `--published --format csv`. */
const HISTORY_COLUMNS: Readonly<Record<keyof HistoryEvent, true>> = {
  ...NAME_COLUMNS,
  publishedAt: true,
  publishedBy: true,
};

/** The columns of `--scheduled --format csv`. */
const SCHEDULED_COLUMNS: Readonly<Record<keyof ScheduledEvent, true>> = {
  ...NAME_COLUMNS,
  dueAt: true,
  scheduledAt: true,
};

/** The columns of `--format csv`. */
const COLUMNS: Readonly<Record<keyof UnpublishedEvent, true>> = {
  eventId: true,
  status: true,
  type: true,
  source: true,
  at: true,
  because: true,
  stuck: true,
  nextAt: true,
  attempts: true,
  fingerprint: true,
  lastError: true,
};

/** `mailroom events list`. */
export function listCommand(io: Io): Command {
  const [since, at] = windowOptions('with --published: how far back', HOUR_MS);
  return new Command('list')
    .description(
      'Lists PENDING events, which wait to be published, and DEAD events, which are not retried. With --published, lists the history, and with --scheduled, the events that are not due yet.',
    )
    .option('--pending', 'only PENDING events')
    .option('--dead', 'only DEAD events')
    .addOption(
      new Option('--published', 'the published events instead, newest first').conflicts([
        'pending',
        'dead',
        'by',
      ]),
    )
    .addOption(
      new Option(
        '--scheduled',
        'the events that are not due yet instead, in order of their due time',
      ).conflicts(['pending', 'dead', 'by', 'published', 'since', 'at']),
    )
    .addOption(
      new Option(
        '--within <duration>',
        'with --scheduled: how far ahead (default: 24h; at most 366d)',
      ).argParser(durationArgument),
    )
    .option('--type <type>', 'with --published or --scheduled: only events of this type')
    .option(
      '--aggregate <id>',
      'with --published or --scheduled: only events of this aggregate, such as an order',
    )
    .addOption(since)
    .addOption(at)
    .addOption(new Option('--by <what>', 'group by').choices(['cause', 'source']))
    .option('--limit <count>', 'list at most this many', countArgument, 100)
    .addOption(formatOption())
    .action(reporting(io, listEvents));
}

async function listEvents(deployment: Deployment, options: EventsOptions): Promise<Report> {
  if (options.within !== undefined && !options.scheduled)
    throw new MailroomError('BAD_ARGUMENT', '--within needs --scheduled. Nothing was read.');
  if (options.published) return historyReport(deployment, options);
  if (options.scheduled) return scheduledReport(deployment, options);
  if (options.type !== undefined || options.aggregate !== undefined || options.at !== undefined) {
    throw new MailroomError(
      'BAD_ARGUMENT',
      '--at needs --published; --type and --aggregate need --published or --scheduled. Nothing was read.',
    );
  }
  const all = options.pending === options.dead;
  const found = await readUnpublished(deployment, {
    pending: all || options.pending === true,
    dead: all || options.dead === true,
  });
  return options.by === undefined
    ? eventsReport(deployment, found, options)
    : groupsReport(deployment, found, options.by);
}

async function historyReport(deployment: Deployment, options: EventsOptions): Promise<Report> {
  const { clock, terminal } = deployment;
  const { format } = options;
  const window = windowOf({ since: HOUR_MS, ...options }, clock.now());
  const { items, more } = await readHistory(deployment, window, options);
  if (format !== undefined && more) terminal.say(MORE_PUBLISHED);
  return reportOf({ events: items, more }, items, (seen) => {
    if (format !== undefined) return exported(items, format, HISTORY_COLUMNS);
    return historyText(seen, clock.now(), window.text) + moreText(more, MORE_PUBLISHED);
  });
}

/** The default of `--within`: with 8 shards, 11,520 queries of half a read unit. */
const WITHIN_MS = DAY_MS;

async function scheduledReport(deployment: Deployment, options: EventsOptions): Promise<Report> {
  const { clock, terminal } = deployment;
  const { format, within = WITHIN_MS } = options;
  if (within > DUE_AHEAD_MAX_MS) {
    throw new MailroomError(
      'BAD_ARGUMENT',
      `--within is ${duration(within)}, but no event is scheduled more than ${duration(DUE_AHEAD_MAX_MS)} ahead. Nothing was read.`,
    );
  }
  const now = clock.now();
  const { items, more } = await readScheduled(deployment, { since: now, until: now + within }, options);
  if (format !== undefined && more) terminal.say(MORE_SCHEDULED);
  return reportOf({ events: items, more }, items, (seen) => {
    if (format !== undefined) return exported(items, format, SCHEDULED_COLUMNS);
    return scheduledText(seen, now, within) + moreText(more, MORE_SCHEDULED);
  });
}

type Found = Awaited<ReturnType<typeof readUnpublished>>;

function eventsReport(
  { clock, commandLine }: Deployment,
  { items, more }: Found,
  { limit, format }: EventsOptions,
): Report {
  const now = clock.now();
  const listed = items.slice(0, limit);
  const cut = more || listed.length < items.length;
  const head = { counts: countsText(items, more), next: nextCommand(items) };
  return reportOf({ events: listed, more: cut }, { listed, head }, (seen) => {
    if (format !== undefined) return exported(listed, format, COLUMNS);
    const next = seen.head.next && commandLine(seen.head.next);
    return eventsText(seen.listed, now, { ...seen.head, next }) + moreText(cut, MORE_LISTED);
  });
}

function groupsReport({ clock }: Deployment, { items, more }: Found, by: 'cause' | 'source'): Report {
  const groups = byCause(
    items.map((event) => ({ ...event, fingerprint: by === 'cause' ? event.fingerprint : event.source })),
  );
  return reportOf(
    by === 'cause' ? { causes: groups, more } : { sources: groups.map(sourceGroup), more },
    groups,
    (seen) => causesText(seen, clock.now()) + moreText(more, MORE_GROUPED),
  );
}

function sourceGroup({ fingerprint: source, ...group }: Cause) {
  return { source, ...group };
}

/** The command to run first. */
function nextCommand(events: readonly UnpublishedEvent[]): ShellText | undefined {
  const isInStatus = ({ because, stuck }: UnpublishedEvent) =>
    stuck || because === 'undeclared' || because === 'unreadable';
  if (events.some(isInStatus)) return shell`status`;
  return events.some(({ status }) => status === 'DEAD') ? shell`dlq list dead --by cause` : undefined;
}

function countsText(events: readonly UnpublishedEvent[], more: boolean): string {
  const dead = events.filter(({ status }) => status === 'DEAD').length;
  const pending = events.length - dead;
  const atLeast = more ? 'at least ' : '';
  return [
    ...(pending > 0 ? [`${atLeast}${many(pending, 'event')} pending`] : []),
    ...(dead > 0 ? [`${atLeast}${many(dead, 'event')} DEAD`] : []),
  ].join(', ');
}

/** The list as text: the counts and the command to run first, then the events. */
function eventsText(
  events: readonly UnpublishedEvent[],
  now: number,
  { counts, next }: { readonly counts: string; readonly next?: string | undefined },
): string {
  if (events.length === 0) return 'No such events.';
  const rows = events.map(({ eventId, status, type, source, at, nextAt, fingerprint, lastError }) => ({
    cells: [
      clipped(eventId),
      status === 'PENDING' ? status : paint.red(status),
      when(at, now),
      status === 'PENDING' ? nextTime(nextAt, now) : 'never',
    ],
    details: [
      `${clipped(type ?? 'unknown type')}${source === null ? '' : ` of ${clipped(source)}`}: ${clipped(lastError ?? fingerprint ?? '?')}`,
    ],
  }));
  return [
    prose(paint.bold(counts)),
    ...(next === undefined ? [] : [`  ${paint.dim(next)}`]),
    '',
    detailedTable(['event', 'status', 'since', 'next'], rows),
  ].join('\n');
}

/** The line below a history that was cut. */
const MORE_PUBLISHED = 'There are more: raise --limit, or choose with --type, --aggregate, --since and --at.';

function historyText(events: readonly HistoryEvent[], now: number, window: string): string {
  if (events.length === 0) return `No such events were published ${window}.`;
  const rows = events.map(
    ({ eventId, type, source, aggregateType, aggregateId, publishedAt, publishedBy }) => ({
      cells: [clipped(eventId), when(publishedAt, now), clipped(publishedBy ?? '?')],
      details: [
        `${clipped(type)} of ${clipped(source)}: ${clipped(aggregateType ?? '?')} ${clipped(aggregateId ?? '?')}`,
      ],
    }),
  );
  return detailedTable(['event', 'published', 'by'], rows);
}

/** The line below a list of scheduled events that was cut. */
const MORE_SCHEDULED = 'More are due later: raise --limit, or choose with --type and --aggregate.';

function scheduledText(events: readonly ScheduledEvent[], now: number, withinMs: number): string {
  if (events.length === 0)
    return `No such events are due in the next ${duration(withinMs)}. To look further ahead, add --within.`;
  const rows = events.map(({ eventId, type, source, aggregateType, aggregateId, dueAt }) => ({
    cells: [clipped(eventId), when(dueAt, now), time(dueAt)],
    details: [
      `${clipped(type)} of ${clipped(source)}: ${clipped(aggregateType ?? '?')} ${clipped(aggregateId ?? '?')}`,
    ],
  }));
  return detailedTable(['event', 'due', 'at'], rows);
}
