import { STUCK_MS } from '../../../lambdas/runtime/base/patience.ts';
import { readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { CaptureConnector } from '../../deployment/stored-rows.ts';
import { clipped } from '../../terminal/output.ts';
import { shell } from '../../terminal/shell.ts';
import { duration, time } from '../../terminal/times.ts';
import type { StateText, WhyContext } from './event-state.ts';
import { bornAt, type TracedEvent } from './trace.ts';

/** True for an event that is left to change data capture: no relay publishes it. */
export function isCaptured({ row }: Pick<TracedEvent, 'row'>): boolean {
  return readable(row)?.publishedBy === 'cdc';
}

/** True for a captured event that no listed consumer handles. */
export function isUnlisted({ row, atSources = [] }: Pick<TracedEvent, 'row' | 'atSources'>): boolean {
  return isCaptured({ row }) && atSources.length === 0;
}

/** The unproven part of the way of such an event. */
export const UNLISTED = 'its consumers of Kafka: none of them is listed here';

/** The way of a captured event, as far as the database knows it: how far its connectors are, and how long it stays. */
export function capturedText(event: TracedEvent): string {
  const { connectors = [] } = event;
  if (connectors.length === 0) return NONE;
  const retentionMs = Math.max(...connectors.map((one) => one.retentionMs));
  const stays = `it stays in the database until ${time(bornAt(event) + retentionMs)} or longer`;
  return [...connectors.map(connectorText), stays].join('; ');
}

const NONE = 'no connector has sent a heartbeat, and until one does, it stays in the database';

/**
 * The verdict on an event that change data capture has not read, as far as the database knows; `undefined` if it may have.
 *
 * @param name - its type and id
 */
export function capturedVerdict(
  name: string,
  event: TracedEvent,
  { now, commandLine }: WhyContext,
): StateText | undefined {
  const { connectors = [], atSources = [] } = event;
  if (atSources.some(({ row }) => row !== undefined)) return undefined;
  const committedAt = bornAt(event);
  const behind = connectors.find(({ readUntil, beatAt }) => (readUntil ?? beatAt ?? 0) < committedAt);
  if (behind === undefined && connectors.length > 0) return undefined;
  const age = now - committedAt;
  const why = behind === undefined ? NONE : connectorText(behind);
  const place = `${name} was left to change data capture ${duration(age)} ago, which has not read it yet`;
  const text = `${place}: ${why}.`;
  if (age <= STUCK_MS) return { state: 'publishing', text, next: null };
  return {
    state: 'stuck',
    text: `${text} Start its connector, or create it (docs/cli.md#cdc). \`doctor\` says which:`,
    next: commandLine(shell`doctor`),
    delay: { place: `${place}.`, problem: `${why}.`, asksFirst: false, before: null },
  };
}

function connectorText({ name, readUntil, beatAt }: CaptureConnector): string {
  const connector = `the connector ${clipped(name)}`;
  if (readUntil !== undefined) return `${connector} has read the log up to ${time(readUntil)}`;
  return beatAt === undefined
    ? `${connector} has not confirmed anything`
    : `the last heartbeat of ${connector} was at ${time(beatAt)}`;
}
