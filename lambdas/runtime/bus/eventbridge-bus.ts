import {
  type EventBridgeClient,
  PutEventsCommand,
  type PutEventsResultEntry,
} from '@aws-sdk/client-eventbridge';
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
      const command = new PutEventsCommand({
        Entries: entries.map((entry) => ({
          EventBusName: busName,
          Source: entry.source,
          DetailType: entry.detailType,
          Detail: entry.detail,
          TraceHeader: entry.traceHeader,
        })),
      });
      tryOnce(command);
      const answer = await within(timeoutMs, (signal) => client.send(command, { abortSignal: signal }));
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

/** An error as the retry strategies of the SDK do not know it, so that they do not retry it. */
class OneTry extends Error {
  readonly inner: unknown;

  constructor(inner: unknown) {
    super('The one try failed');
    this.inner = inner;
  }
}

/**
 * Keeps the client from retrying this one command, whatever it is configured to do: a retry would make a call
 * outlast the time that its caller planned for it. The first middleware runs inside the SDK's retry loop and
 * disguises what failed; the second, outside of it, takes the disguise off.
 */
function tryOnce(command: PutEventsCommand): void {
  command.middlewareStack.add(
    (next) => async (args) => {
      try {
        return await next(args);
      } catch (error) {
        throw new OneTry(error);
      }
    },
    { name: 'mailroomDisguiseFailure', step: 'deserialize', priority: 'high' },
  );
  command.middlewareStack.add(
    (next) => async (args) => {
      try {
        return await next(args);
      } catch (error) {
        throw error instanceof OneTry ? error.inner : error;
      }
    },
    { name: 'mailroomUncoverFailure', step: 'initialize', priority: 'high' },
  );
}

async function within<T>(timeoutMs: number, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new MailroomError('PUBLISH_TIMEOUT', `PutEvents gave no answer within ${timeoutMs} ms.`));
      controller.abort();
    }, timeoutMs);
  });
  try {
    return await Promise.race([call(controller.signal), timeout]);
  } finally {
    clearTimeout(timer);
  }
}
