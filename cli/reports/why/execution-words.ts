import { clipped } from '../../terminal/output.ts';
import { prose } from '../../terminal/prose.ts';
import { time } from '../../terminal/times.ts';
import type { Trace } from './trace.ts';

/** The executions that a trace's events started, as in the JSON document of docs/cli-json.md. */
export function executionReports({ events }: Trace) {
  return events.flatMap(({ eventId, messages }) =>
    messages.flatMap(({ consumer, executions = [] }) =>
      executions.map(({ effect, executionName, executionArn, state, unread = null }) => ({
        eventId,
        consumer: consumer.name,
        effect,
        executionName,
        executionArn,
        status: state?.status ?? null,
        startedAt: state?.startedAt ?? null,
        endedAt: state?.endedAt ?? null,
        error: state?.error ?? null,
        cause: state?.cause ?? null,
        unread,
      })),
    ),
  );
}

/** A sentence on each execution that the events started. */
export function executionTexts(trace: Trace): string[] {
  return executionReports(trace).map((execution) => {
    const { consumer, executionName, executionArn } = execution;
    return prose(
      `${consumer} started the execution ${clipped(executionName)}${stateText(execution)}${executionArn === null ? '' : ` ${executionArn}`}`,
    );
  });
}

function stateText({
  status,
  startedAt,
  endedAt,
  error,
  cause,
  unread,
}: ReturnType<typeof executionReports>[number]): string {
  if (unread !== null) return `; its state cannot be read (${unread}).`;
  if (status === null) return '.';
  const at = endedAt ?? startedAt;
  const when = at === null ? '' : ` ${endedAt === null ? 'since' : 'at'} ${time(at)}`;
  const why = [error, cause].filter((text) => text !== null).map((text) => clipped(text));
  return `: ${status}${when}${why.length === 0 ? '' : ` (${why.join(': ')})`}.`;
}
