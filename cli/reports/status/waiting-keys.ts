import { STUCK_MS } from '../../../lambdas/runtime/base/patience.ts';
import { isOverdue } from '../../../lambdas/runtime/inbox/inbox-state.ts';
import type { LimitWait } from '../../../lambdas/runtime/store/inbox-row.ts';
import type { WaitingMessage } from '../../deployment/message-reader.ts';
import { limitOfRow } from '../../deployment/row-text.ts';

/** The messages that wait for one key of a limit, at one consumer. */
export interface WaitingKey {
  readonly consumer: string;
  /** The limit's name, or the type of the event whose handler has it. */
  readonly limit: string;
  /** At most 120 characters of the key. */
  readonly key: string;
  readonly messages: number;
  /** When the last of them is delivered again, epoch milliseconds; `null` if no row has the time. */
  readonly lastAt: number | null;
}

/** Returns true for a message that waits for its limit, and has not failed. One whose slot has long passed does not: its queue may have lost it. */
export function isLimited(message: Pick<WaitingMessage, 'state'>, now: number): boolean {
  return limitOf(message, now) !== undefined;
}

function limitOf({ state }: Pick<WaitingMessage, 'state'>, now: number): LimitWait | undefined {
  return state.is === 'failed' && !isOverdue(state.row, now - STUCK_MS) ? limitOfRow(state.row) : undefined;
}

/** Groups messages that wait for a limit by its key, those with the most messages first. */
export function waitingKeys(consumer: string, waiting: readonly WaitingMessage[], now: number): WaitingKey[] {
  const keys = new Map<string, WaitingKey>();
  for (const message of waiting) {
    const wait = limitOf(message, now);
    if (wait === undefined || message.state.is !== 'failed') continue;
    const { name: limit, key } = wait;
    const id = JSON.stringify([limit, key]);
    const { messages, lastAt } = keys.get(id) ?? { messages: 0, lastAt: null };
    const last = Math.max(lastAt ?? 0, message.state.row.retryAt ?? 0);
    keys.set(id, { consumer, limit, key, messages: messages + 1, lastAt: last === 0 ? null : last });
  }
  return [...keys.values()].sort((a, b) => b.messages - a.messages);
}
