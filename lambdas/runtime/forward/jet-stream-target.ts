import { errorCode, errorMessage } from '../base/errors.ts';
import { forwardAddress } from '../base/forward-address.ts';
import type { ReceivedEvent } from '../events/event.ts';
import { type ForwardEntry, type ForwardTarget, type RefusalCodes, refusedBy } from './forward-target.ts';
import { heldConnection } from './held-connection.ts';

/** The part of a connection of `nats` that {@link jetStreamTarget} uses; of `@nats-io/transport-node` with `@nats-io/jetstream`. */
export interface NatsConnection {
  jetstream(): {
    publish(
      subject: string,
      payload: Uint8Array,
      options: never, // its own type, in which msgID and headers are set
    ): Promise<{ readonly stream: string; readonly seq: number; readonly duplicate: boolean }>;
  };
  isClosed(): boolean;
  close(): Promise<void>;
}

/**
 * Codes of the clients, `nats` and `@nats-io`, and of JetStream's API (`err_code`). Any other is `unavailable`: e.g. 10077, a full stream.
 */
const REFUSALS: RefusalCodes = [
  ['missing', /^(503|JetStreamNotEnabled)$/], // no responders: no stream has the subject
  ['denied', /AUTH|PERMISSION/i],
  ['too-large', /^(10054|MAX_PAYLOAD_EXCEEDED|InvalidArgumentError)$/], // of the arguments, only the payload comes from an event
  ['invalid', /^(BAD_SUBJECT|InvalidSubjectError)$/],
];

/**
 * Forwards to a subject of a NATS JetStream. `Nats-Msg-Id` is the event id, so within the stream's duplicate window the stream drops a
 * repeated event.
 *
 * @param target.connect - connects: `(servers) => connect({ servers })` of `nats`; with `@nats-io`, add `jetstream` to the connection:
 * `Object.assign(connection, { jetstream: () => jetstream(connection) })`
 * @param target.headers - makes headers: `headers` of the same package
 * @param target.subject - the subject, or a function of the event
 * @param target.servers - addresses, separated by commas @default the environment, as `forwardsTo` sets it
 */
export function jetStreamTarget(target: {
  readonly connect: (servers: string[]) => Promise<NatsConnection>;
  readonly headers: () => { set(name: string, value: string): void };
  readonly subject: string | ((event: ReceivedEvent) => string);
  readonly servers?: string | undefined;
}): ForwardTarget {
  const { subject } = target;
  const held = heldConnection(
    async () => target.connect(forwardAddress(target.servers, 'servers').split(',')),
    (connection) => connection.close(),
  );
  const sendOne = async ({ event, body, headers }: ForwardEntry) => {
    try {
      const given = target.headers();
      for (const [name, value] of Object.entries(headers)) given.set(name, printable(value));
      const options = { msgID: event.eventId, headers: given };
      const connection = await held.get();
      const to = typeof subject === 'string' ? subject : subject(event);
      const { stream, seq, duplicate } = await connection
        .jetstream()
        .publish(to, Buffer.from(body), options as never)
        .finally(() => connection.isClosed() && held.drop(connection));
      return { ok: true as const, place: { stream, sequence: seq }, ...(duplicate && { duplicate }) };
    } catch (error) {
      const { api_error, code } = Object(error) as ApiFailure;
      const said = String(api_error?.err_code ?? code ?? errorCode(error));
      const refusal = refusedBy(REFUSALS, said, api_error?.description ?? errorMessage(error));
      // The clients know only that nothing has answered.
      const message = 'no stream stores messages of this subject, or JetStream is not enabled';
      return refusal.refusal === 'missing' ? { ...refusal, message } : refusal;
    }
  };
  return {
    name: () => (typeof subject === 'string' ? `subject ${subject}` : 'JetStream'),
    limits: { entries: 100, bytes: Number.POSITIVE_INFINITY },
    cloudEventsPrefix: 'ce-',
    send: (entries) => Promise.all(entries.map(sendOne)),
    reset: () => held.drop(),
  };
}

/** An error of `nats`, with the answer of JetStream's API if there is one. */
interface ApiFailure {
  readonly api_error?: { readonly err_code?: number; readonly description?: string };
  readonly code?: unknown;
}

/** A header of NATS has one line. CloudEvents encodes other characters than printable ASCII by percent signs. */
function printable(value: string): string {
  return value.replace(/[^\x20-\x7e]|[%"]/gu, encodeURIComponent);
}
