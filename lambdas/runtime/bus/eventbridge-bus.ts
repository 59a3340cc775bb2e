import {
  type EventBridgeClient,
  PutEventsCommand,
  type PutEventsResultEntry,
} from '@aws-sdk/client-eventbridge';
import { sentOnce } from '../base/client-settings.ts';
import type { MailroomErrorCode } from '../base/error-codes.ts';
import { MailroomError } from '../base/errors.ts';
import { requireGiven } from '../base/given-names.ts';
import type { Bus, BusEntry, BusResult } from './event-bus.ts';

/** Dependencies of {@link eventBridgeBus}. */
export interface EventBridgeBusDeps {
  /**
   * Your client. Its retries do not apply to this bus: every call is tried once. Set its request timeout: a call that this bus
   * no longer waits for keeps its connection until then.
   */
  readonly client: EventBridgeClient;
  /** The name or ARN of the bus. */
  readonly busName: string;
}

/**
 * The bus port on EventBridge.
 *
 * @throws (from `put`) `PUBLISH_TIMEOUT` if no response arrived in time; otherwise the client's own error
 *
 * @example
 * ```ts
 * const bus = eventBridgeBus({ client: new EventBridgeClient(), busName: config.busName });
 * ```
 */
export function eventBridgeBus(deps: EventBridgeBusDeps): Bus {
  requireGiven('eventBridgeBus', deps, 'client', 'busName');
  const { client, busName } = deps;
  // A separate class: a client with `cacheMiddleware` caches middleware by class, and its owner's PutEvents calls are retried.
  // Defined here, because a module must not read an optional package when it is loaded (tools/pack/commonjs.ts).
  class PutOnceCommand extends PutEventsCommand {}
  return {
    put: async (entries, timeoutMs) => {
      const Entries = entries.map((entry) => ({
        EventBusName: busName,
        Source: entry.source,
        DetailType: entry.detailType,
        Detail: entry.detail,
        TraceHeader: entry.traceHeader,
      }));
      const command = sentOnce(new PutOnceCommand({ Entries })); // the relay decides about retries
      // Without options, in particular without an abort signal: with options, the SDK does not use its cached middleware.
      const answer = await inTime(client.send(command), timeoutMs);
      return entries.map((entry, index) => result(entry, answer.Entries?.[index]));
    },
  };
}

/** As `withDeadline`, without an abort signal for each call. */
async function inTime<T>(sent: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(
        new MailroomError(
          'PUBLISH_TIMEOUT',
          `PutEvents did not respond within ${timeoutMs} ms, so the events may have been published; they are published again.`,
        ),
      );
    }, timeoutMs);
  });
  try {
    return await Promise.race([sent, late]);
  } finally {
    clearTimeout(timer);
  }
}

function result(entry: BusEntry, answer: PutEventsResultEntry | undefined): BusResult {
  if (answer?.EventId && !answer.ErrorCode) return { ok: true, id: answer.EventId };
  if (answer?.ErrorCode) return { ok: false, code: answer.ErrorCode, message: answer.ErrorMessage ?? '' };
  return {
    ok: false,
    code: 'NO_ANSWER' satisfies MailroomErrorCode,
    message: `EventBridge returned no result for this ${entry.detailType} entry.`,
  };
}
