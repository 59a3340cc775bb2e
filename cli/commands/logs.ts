import { Command } from 'commander';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { HOUR_MS } from '../../lambdas/runtime/base/units.ts';
import type { ConsumerEntry } from '../../lambdas/runtime/operations/directory.ts';
import { eventIdTime } from '../../lambdas/runtime/store/event-id.ts';
import { isExternalEventId } from '../../lambdas/runtime/store/external-id.ts';
import { isUnreadable, readable } from '../../lambdas/runtime/store/stored-rows.ts';
import { defaultLogGroup } from '../deployment/deployed-function.ts';
import type { Deployment } from '../deployment/deployment.ts';
import { wholeEventId } from '../deployment/event-prefix.ts';
import { eachOf } from '../deployment/rows-reader.ts';
import { bornAt, type TracedEvent } from '../reports/why/trace.ts';
import { readTrace } from '../reports/why/trace-reader.ts';
import type { Io } from '../terminal/io.ts';
import { paint } from '../terminal/paint.ts';
import { prose } from '../terminal/prose.ts';
import { shell } from '../terminal/shell.ts';
import { reportOf } from '../terminal/terminal.ts';
import { reporting } from './command.ts';

/** Lines before the commit and after the end are in range, too: clocks differ, and lines arrive late. */
const MARGIN_MS = 60_000;

/** A function that handled an event, as in the JSON document of docs/cli-json.md. */
interface FunctionLog {
  /** A consumer, `stream relay` or `sweep`. */
  readonly part: string;
  readonly function: string;
  readonly logGroup: string;
  /** The command of the AWS CLI that prints its lines. */
  readonly command: string;
}

/** `mailroom logs`. */
export function logsCommand(io: Io): Command {
  return new Command('logs')
    .description(
      'Prints the commands, and a Logs Insights link, that show the log lines about an event, or the last ones of a consumer.',
    )
    .argument('<eventId>', 'the event id, or its first 8 or more characters; or the name of a consumer')
    .action(reporting(io, logs, 'eventId'));
}

/** The functions whose log lines are meant, and their range. Times are epoch milliseconds. */
interface LogSubject {
  /** `null` for a consumer: all lines are meant, also those of a function that does not start, which name no event. */
  readonly eventId: string | null;
  readonly since: number;
  readonly until: number;
  readonly handlers: readonly EventFunction[];
}

/** A function that handles events. */
interface EventFunction extends Pick<FunctionLog, 'part' | 'function'> {
  readonly alias?: string | undefined;
}

async function logs(deployment: Deployment, { eventId: given }: { readonly eventId: string }) {
  const { eventId, since, until, handlers } = await subjectOf(deployment, given);
  const functions = await eachOf(handlers, async ({ alias, ...handler }): Promise<FunctionLog> => {
    const deployed = await deployment.deployedFunction(handler.function, alias);
    const logGroup = deployed?.logGroup ?? defaultLogGroup(handler.function);
    const filter = eventId === null ? [] : ['--filter-pattern', `"${eventId}"`];
    const range = [`${since}`, '--end-time', `${until}`, ...filter];
    const command = deployment.awsLine(
      shell`logs filter-log-events --log-group-name ${logGroup} --start-time ${range} --query ${'events[].message'} --output text`,
    );
    return { ...handler, logGroup, command };
  });
  const filter = eventId === null ? '' : `| filter @message like "${eventId}"\n`;
  const query = `fields @timestamp, @log, @message\n${filter}| sort @timestamp asc`;
  const logGroups = [...new Set(functions.map(({ logGroup }) => logGroup))];
  // A local engine has no console.
  const insights = deployment.isLocal
    ? null
    : insightsLink({ region: deployment.region, logGroups, since, until, query });
  const result = { eventId, since, until, functions, query, insights };
  return reportOf(result, result, logsText);
}

/** @param given - the name of a consumer, or an event id. @throws `NO_SUCH_EVENT` */
async function subjectOf(deployment: Deployment, given: string): Promise<LogSubject> {
  const now = deployment.clock.now();
  const consumer = deployment.directory.consumers.find(({ name }) => name === given);
  if (consumer !== undefined)
    return { eventId: null, since: now - HOUR_MS, until: now + MARGIN_MS, handlers: [handlerOf(consumer)] };
  const { event, eventId } = await find(deployment, given);
  const begin = isExternalEventId(eventId) ? bornAt(event) : eventIdTime(eventId);
  // CloudWatch refuses a range that begins after its end, as that of an event that is not due would.
  const since = Math.min(begin, now) - MARGIN_MS;
  return { eventId, since, until: endOf(event, now) + MARGIN_MS, handlers: functionsOf(deployment, event) };
}

/** @throws `NO_SUCH_EVENT` */
async function find(deployment: Deployment, given: string): Promise<{ eventId: string; event: TracedEvent }> {
  const eventId = await wholeEventId(deployment, given);
  const trace = eventId === undefined ? undefined : await readTrace(deployment, [eventId]);
  const event = trace?.events.find((traced) => traced.eventId === eventId);
  if (eventId !== undefined && event !== undefined) return { eventId, event };
  throw new MailroomError(
    'NO_SUCH_EVENT',
    `No event of ${deployment.directory.mailroom.stack} has the id "${given}", and no consumer that name. mailroom why finds events by other ids.`,
  );
}

/** The relay that published the event, and the consumers that must receive it. */
function functionsOf(
  { directory: { mailroom } }: Deployment,
  { eventId, row, messages }: TracedEvent,
): EventFunction[] {
  const stream = { part: 'stream relay', function: mailroom.streamFunction };
  const sweep = { part: 'sweep', function: mailroom.sweepFunction };
  const publisher = readable(row)?.publishedBy;
  const relays = isExternalEventId(eventId)
    ? []
    : publisher === 'stream'
      ? [stream]
      : publisher === 'sweep'
        ? [sweep]
        : [stream, sweep];
  return [...relays, ...messages.map(({ consumer }) => handlerOf(consumer))];
}

function handlerOf({ name: part, function: handler, alias }: ConsumerEntry): EventFunction {
  return { part, function: handler, alias };
}

/** The end of the work on an event; now, while it is not finished. */
function endOf({ row, messages }: TracedEvent, now: number): number {
  const isDone = !isUnreadable(row) && row?.status !== 'PENDING';
  const ends = messages.map((message) => {
    const row = readable(message.row);
    return row?.status === 'PROCESSED' ? (row.processedAt ?? now) : now;
  });
  return isDone && ends.length > 0 ? Math.max(...ends) : now;
}

function logsText({
  eventId,
  functions,
  insights,
}: {
  readonly eventId: string | null;
  readonly functions: readonly FunctionLog[];
  /** `null` on a local engine. */
  readonly insights: string | null;
}): string {
  return [
    ...(eventId === null
      ? []
      : [
          prose(
            `${paint.bold(eventId)}: a function logs a line about an event only if something went wrong.`,
          ),
        ]),
    ...functions.flatMap(({ part, command }) => [`${part}:`, `  ${command}`]),
    ...(insights === null
      ? []
      : [functions.length === 1 ? 'In Logs Insights:' : 'All of them, in Logs Insights:', `  ${insights}`]),
  ].join('\n');
}

/** The query and the range of a Logs Insights link. */
interface LogsQuery {
  readonly region: string;
  readonly logGroups: readonly string[];
  /** Epoch milliseconds. */
  readonly since: number;
  readonly until: number;
  readonly query: string;
}

/** The domains of the console outside the commercial regions. */
const DOMAINS: readonly (readonly [string, string])[] = [
  ['cn-', 'console.amazonaws.cn'],
  ['us-gov-', 'console.amazonaws-us-gov.com'],
];

/** A link to the console's Logs Insights page that has the query, the range and the log groups filled in. */
function insightsLink({ region, logGroups, since, until, query }: LogsQuery): string {
  const domain =
    DOMAINS.find(([prefix]) => region.startsWith(prefix))?.[1] ?? `${region}.console.aws.amazon.com`;
  const members = [
    `end~'${coded(new Date(until).toISOString())}`,
    `start~'${coded(new Date(since).toISOString())}`,
    "timeType~'ABSOLUTE",
    "tz~'UTC",
    `editorString~'${coded(query)}`,
    `source~(${logGroups.map((group) => `~'${coded(group)}`).join('')})`,
  ];
  const detail = `~(${members.join('~')})`;
  return `https://${domain}/cloudwatch/home?region=${region}#logsV2:logs-insights$3FqueryDetail$3D${detail}`;
}

/** The console's own encoding of a text: percent-encoding with an asterisk for the percent sign. */
function coded(text: string): string {
  return encodeURIComponent(text)
    .replace(/[!'()*~]/g, (character) => `%${character.charCodeAt(0).toString(16)}`)
    .replaceAll('%', '*');
}
