import {
  type EventBridgeClient,
  PutEventsCommand,
  type PutEventsResultEntry,
} from '@aws-sdk/client-eventbridge';
import { sentOnce } from '../client-settings.ts';
import { systemClock } from '../clock.ts';
import { withDeadline } from '../deadline.ts';
import { MailroomError } from '../errors.ts';
import type { Bus, BusEntry, BusResult } from './event-bus.ts';

/** What {@link eventBridgeBus} is made of. */
export interface EventBridgeBusDeps {
  /** The caller's client. Its retries do not apply to this bus: every call is tried once. */
  readonly client: EventBridgeClient;
  /** The bus: its name or its ARN. */
  readonly busName: string;
}

/**
 * The bus port on EventBridge.
 *
 * @throws (from `put`) `PUBLISH_TIMEOUT` when no answer came in time; else the client's own error
 *
 * @example
 * ```ts
 * const bus = eventBridgeBus({ client: new EventBridgeClient(), busName: config.busName });
 * ```
 */
export function eventBridgeBus({ client, busName }: EventBridgeBusDeps): Bus {
  return {
    put: async (entries, timeoutMs) => {
      const Entries = entries.map((entry) => ({
        EventBusName: busName,
        Source: entry.source,
        DetailType: entry.detailType,
        Detail: entry.detail,
        TraceHeader: entry.traceHeader,
      }));
      const command = sentOnce(new PutEventsCommand({ Entries })); // the relay itself decides about a retry
      const hung = new AbortController();
      const sent = client.send(command, { abortSignal: hung.signal });
      const answer = await withDeadline(systemClock, timeoutMs, sent, () => {
        hung.abort();
        throw new MailroomError('PUBLISH_TIMEOUT', `PutEvents gave no answer within ${timeoutMs} ms.`);
      });
      return entries.map((entry, index) => result(entry, answer.Entries?.[index]));
    },
  };
}

function result(entry: BusEntry, answer: PutEventsResultEntry | undefined): BusResult {
  if (answer?.EventId && !answer.ErrorCode) return { ok: true, id: answer.EventId };
  if (answer?.ErrorCode) return { ok: false, code: answer.ErrorCode, message: answer.ErrorMessage ?? '' };
  return {
    ok: false,
    code: 'NoAnswer',
    message: `EventBridge did not answer for this ${entry.detailType} entry`,
  };
}
