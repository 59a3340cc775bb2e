import type { Deployment } from '../../deployment/deployment.ts';
import { paint } from '../../terminal/paint.ts';
import { prose } from '../../terminal/prose.ts';
import { shell } from '../../terminal/shell.ts';
import { duration, time } from '../../terminal/times.ts';
import type { HeartbeatStatus } from './heartbeat-status.ts';
import type { StatusReport } from './status-report.ts';

/** The heartbeat as one line; none if none is scheduled. */
export function heartbeatText({ heartbeat }: StatusReport): string[] {
  if (heartbeat === null) return [];
  const line = `heartbeat ${sentText(heartbeat)}`;
  return [prose(heartbeat.state === 'ok' ? line : paint.yellow(line))];
}

function sentText({ sentAgoMs, acknowledged, slowestMs, waiting }: HeartbeatStatus): string {
  if (sentAgoMs === null) return 'not sent yet';
  const sent = `${duration(sentAgoMs)} ago`;
  if (waiting.length > 0) return `${sent}, not yet acknowledged by ${waiting.join(', ')}`;
  if (acknowledged === 0) return `${sent}, which no deployed consumer must acknowledge`;
  return `${sent}, acknowledged by ${acknowledged === 1 ? 'the consumer' : `all ${acknowledged} consumers`} within ${duration(slowestMs)}`;
}

/** Adds what the heartbeat shows, and the command to run first, unless the wiring or a look explains it. */
export function heartbeatFindings(
  { heartbeat, wiring, looks }: StatusReport,
  { awsLine, commandLine }: Pick<Deployment, 'awsLine' | 'commandLine'>,
): { readonly what: string; readonly next: string }[] {
  if (heartbeat === null || heartbeat.state === 'ok') return [];
  const known = new Set([
    ...wiring.problems.filter(({ level }) => level === 'flow').map(({ part }) => part),
    ...looks.map(({ consumer }) => consumer),
  ]);
  const { state, sentAgoMs } = heartbeat;
  if (state === 'silent') {
    if (known.has('heartbeat')) return [];
    const since = sentAgoMs === null ? 'since its deployment' : `for ${duration(sentAgoMs)}`;
    const invoke = shell`lambda invoke --function-name ${heartbeat.function} /dev/stdout`;
    return [
      { what: `no heartbeat was sent ${since}. Run its function to see its error`, next: awsLine(invoke) },
    ];
  }
  const late = heartbeat.late.filter(({ consumer }) => !known.has(consumer));
  const [first] = late;
  if (first === undefined) return [];
  const have = late.length === 1 ? 'has' : 'have';
  const what = `heartbeat late: ${late.map(({ consumer }) => consumer).join(', ')} ${have} not acknowledged the one of ${time(first.sentAt)}`;
  return [{ what, next: commandLine(shell`why ${first.eventId}`) }];
}
