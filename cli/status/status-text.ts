import { duration, table, time } from '../frame/output.ts';
import { paint } from '../frame/paint.ts';
import { type ShellText, shell } from '../frame/shell.ts';
import { hours } from '../trace/verdict.ts';
import { STUCK_MS, type StatusReport } from './status-report.ts';

/** The status for people: first whether somebody is needed, and what to type. */
export function statusText(report: StatusReport, commandLine: (command: ShellText) => string): string {
  const { stack, region, at } = report;
  const findings = findingsOf(report);
  const verdict =
    findings.length === 0
      ? paint.green('all is well')
      : paint.red(
          findings.length === 1 ? '1 thing needs somebody' : `${findings.length} things need somebody`,
        );
  const lines = findings.flatMap(({ what, command }) => [
    `  ${paint.red('•')} ${what}`,
    `    ${paint.dim(commandLine(command))}`,
  ]);
  return [
    `${paint.bold(verdict)}  ${stack}, ${region}, ${time(at)}`,
    ...lines,
    '',
    outboxText(report),
    '',
    consumersText(report),
    '',
    placesText(report),
  ].join('\n');
}

interface Finding {
  readonly what: string;
  readonly command: ShellText;
}

/** What needs somebody, and the command to run first. */
function findingsOf({ outbox, consumers, places, gone, at }: StatusReport): Finding[] {
  const stuck = outbox.oldestPendingMs > STUCK_MS;
  const swept = outbox.sweptAgoMs === null ? 'never' : `${duration(outbox.sweptAgoMs)} ago`;
  return [
    ...(stuck
      ? [
          {
            what: `an event has been waiting for ${duration(outbox.oldestPendingMs)} to be published; the sweep last ran ${swept}`,
            command: shell`sweep --since ${hours(outbox.oldestPendingMs)}`,
          },
        ]
      : []),
    ...(!stuck && outbox.unsweptMs > STUCK_MS
      ? [{ what: `${unsweptText(outbox)}: ${UNSWEPT_MEANS}`, command: shell`sweep --since 1h` }]
      : []),
    ...(outbox.unreadable > 0
      ? [
          {
            what: `${many(outbox.unreadable, 'PENDING row')} in the outbox cannot be read, and may never be published`,
            command: shell`audit --since 24h`,
          },
        ]
      : []),
    ...gone.map((url) => ({ what: `the queue ${url} does not exist`, command: shell`audit --since 1h` })),
    ...places
      .filter(({ count }) => count > 0)
      .map(({ place, count, firstExpiryAt }) => ({
        what: `${many(count, place === 'dead' ? 'DEAD event' : 'letter')}${place === 'dead' ? '' : ` in ${place}`}${
          firstExpiryAt === null ? '' : `, the first is deleted for ever in ${duration(firstExpiryAt - at)}`
        }`,
        command: place === 'dead' ? shell`dead list --by cause` : shell`dlq list ${place}`,
      })),
    ...Object.entries(consumers)
      .filter(
        ([name, { rejected }]) =>
          rejected > 0 && !places.some(({ place, count }) => place === `consumer:${name}` && count > 0),
      )
      .map(([name, { rejected }]) => ({
        what: `${many(rejected, 'message')} rejected by ${name}, without a letter: on its way, or deleted by now`,
        command: shell`messages list --rejected --consumer ${name}`,
      })),
    ...Object.entries(consumers)
      .filter(([, { unreadable }]) => unreadable > 0)
      .map(([name, { unreadable }]) => ({
        what: `the rows of ${many(unreadable, 'message')} of ${name} cannot be read`,
        command: shell`messages list --consumer ${name}`,
      })),
  ];
}

/** The consequence of a sweep that does not run. */
const UNSWEPT_MEANS = 'what the stream path misses waits, and nobody watches the dead letters';

function unsweptText({ sweptAgoMs, unsweptMs }: StatusReport['outbox']): string {
  return sweptAgoMs === null
    ? `the sweep has never run a whole pass, and the table was created ${duration(unsweptMs)} ago`
    : `the sweep began its last whole pass ${duration(sweptAgoMs)} ago`;
}

function outboxText({ outbox, atLeast }: StatusReport): string {
  const { pending, oldestPendingMs, dead, sweptAgoMs } = outbox;
  return table(
    ['outbox', 'pending', 'oldest', 'dead', 'swept'],
    [
      [
        '',
        counted(pending, atLeast.includes('outbox.pending')),
        pending === 0 ? '-' : duration(oldestPendingMs),
        alarming(counted(dead, atLeast.includes('outbox.dead')), dead),
        sweptAgoMs === null ? 'never' : `${duration(sweptAgoMs)} ago`,
      ],
    ],
  );
}

function consumersText({ consumers, atLeast }: StatusReport): string {
  const rows = Object.entries(consumers).map(([name, { queued, inFlight, failed, rejected, dlq }]) => [
    name,
    queued,
    inFlight,
    counted(failed, atLeast.includes(`consumers.${name}.failed`)),
    alarming(counted(rejected, atLeast.includes(`consumers.${name}.rejected`)), rejected),
    alarming(String(dlq), dlq),
  ]);
  if (rows.length === 0) return paint.dim('There is no consumer.');
  return table(['consumer', 'queued', 'in flight', 'failed', 'rejected', 'letters'], rows);
}

function placesText({ places, at }: StatusReport): string {
  const filled = places.filter(({ count }) => count > 0);
  if (filled.length === 0) return paint.dim('Nothing is dead anywhere.');
  const rows = filled.map(({ place, count, oldestAt, firstExpiryAt }) => [
    place,
    alarming(String(count), count),
    oldestAt === null ? '-' : `${duration(at - oldestAt)} ago`,
    firstExpiryAt === null
      ? place === 'dead' && count > 0
        ? 'never'
        : '-'
      : `in ${duration(firstExpiryAt - at)}`,
  ]);
  return table(['where it is dead', 'count', 'oldest', 'first deleted'], rows);
}

function alarming(text: string, count: number): string {
  return count > 0 ? paint.red(text) : text;
}

/** A count, and whether there are more than were counted. */
function counted(count: number, more: boolean): string {
  return more ? `${count}+` : String(count);
}

function many(count: number, thing: string): string {
  return count === 1 ? `1 ${thing}` : `${count} ${thing}s`;
}
