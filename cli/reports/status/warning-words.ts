import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { clipped, many } from '../../terminal/output.ts';
import { hours, type ShellText, shell } from '../../terminal/shell.ts';
import { duration, time } from '../../terminal/times.ts';
import type { Finding } from '../findings/findings.ts';
import type { Warning } from './consumer-warnings.ts';

/** The words of a warning. The first sentence has the cause: a list shows only that one. */
interface WarningWords {
  readonly what: string;
  readonly count?: Finding['count'];
  /** The commands to run, in order. */
  readonly commands: readonly [ShellText, ...ShellText[]];
}

/** The sentences about a warning, and its commands. */
export function warningWords(warning: Warning): WarningWords {
  return WORDS[warning.look](warning);
}

const WORDS: Readonly<Record<Warning['look'], (warning: Warning) => WarningWords>> = {
  failing: ({ consumer, messages, forMs, lastError }) => ({
    what:
      `${consumer} fails at every message: ${messages} failed, and it processed none of the events of the last ${duration(forMs)}` +
      // Last, because it may be long.
      (lastError === undefined ? '' : `; newest error: ${clipped(lastError)}`),
    commands: [shell`messages list --failed --by cause --consumer ${consumer}`],
  }),
  stalled: ({ consumer, messages, forMs }) => ({
    what:
      `${consumer} claims no messages: ${many(messages, 'message')} in its queue, none in flight, and events published ${duration(forMs)} ago ` +
      'are unclaimed. Does its function start?',
    commands: [shell`logs ${consumer}`, shell`audit --since ${hours(forMs)}`],
  }),
  crashing: ({ consumer, messages, forMs }) => ({
    what:
      `${consumer} finishes no messages: its function crashes, or cannot reach the table, as its log shows. ` +
      `${many(messages, 'message')} in flight, and no attempt at events published ${duration(forMs)} ago ended`,
    commands: [shell`logs ${consumer}`],
  }),
  missing: ({ consumer, messages, forMs, conclusiveAt }) => ({
    count: messages,
    what:
      `${many(messages, 'event')} of a sample of the last hour did not reach ${consumer}, published up to ${duration(forMs)} ago: ` +
      `lost, unless still in delivery. An audit is conclusive ${conclusiveAt == null ? 'once its queue is empty' : `from ${time(conclusiveAt)} on`}`,
    commands: [shell`audit --since ${hours(forMs + MINUTE_MS)}`],
  }),
  behind: ({ consumer, messages, forMs, usualMs }) => ({
    what:
      usualMs === undefined
        ? `${consumer} is behind: ${many(messages, 'message')} in its queue, and events published ${duration(forMs)} ago are unclaimed`
        : `${consumer} falls behind: ${many(messages, 'message')} in its queue, not fewer than before, and events published ${duration(forMs)} ago are unclaimed; usually the oldest waits for at most ${duration(usualMs)}`,
    commands: [shell`status --watch`],
  }),
};
