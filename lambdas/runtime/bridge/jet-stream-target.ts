import { bridgeAddress } from '../base/bridge-address.ts';
import { errorCode, errorMessage } from '../base/errors.ts';
import { requireGiven } from '../base/given-names.ts';
import type { ReceivedEvent } from '../events/event.ts';
import {
  type BridgedEvent,
  type BridgeResult,
  type BridgeTarget,
  bridgedId,
  type RefusalCodes,
  refusedBy,
} from './bridge-target.ts';
import { heldConnection } from './held-connection.ts';
import { addressOf, natsSubject, sendBuilt } from './message-grammar.ts';

/** The part of a connection of `@nats-io/transport-node` that {@link jetStreamTarget} uses. */
export interface NatsConnection {
  isClosed(): boolean;
  close(): Promise<void>;
}

/** The part of a client of `@nats-io/jetstream` that {@link jetStreamTarget} uses. */
export interface JetStreamPublisher {
  publish(
    subject: string,
    payload: Uint8Array,
    options: never, // its own type, in which msgID and headers are set
  ): Promise<{ readonly stream: string; readonly seq: number; readonly duplicate: boolean }>;
}

/**
 * The names of the client's errors, and the codes of JetStream's API (`err_code`). Any other is `unavailable`: e.g. 10077, a full stream.
 */
const REFUSALS: RefusalCodes = [
  ['missing', /^JetStreamNotEnabled$/], // no responders: no stream has the subject
  ['denied', /AUTH|PERMISSION/i],
  ['too-large', /^(10054|InvalidArgumentError)$/], // of the arguments, only the size of the payload is not checked before
];

/**
 * Forwards to a subject of a NATS JetStream. `Nats-Msg-Id` is `<bridge>/<event id>`, so within the stream's duplicate window the stream drops an
 * event that the same bridge sends again, and stores those of another bridge.
 *
 * @param target.connect - connects: `(servers) => connect({ servers })`, with `connect` of `@nats-io/transport-node`
 * @param target.jetstream - makes the client of a connection: `jetstream` of `@nats-io/jetstream`
 * @param target.headers - makes headers: `headers` of `@nats-io/transport-node`
 * @param target.subject - the subject, or a function of the event; an event whose subject NATS does not accept is rejected
 * @param target.servers - addresses, separated by commas @default the environment, as `forwardsTo` sets it
 * @throws `BAD_ARGUMENT` if `subject` is a text that NATS does not accept
 */
export function jetStreamTarget<C extends NatsConnection>(target: {
  readonly connect: (servers: string[]) => Promise<C>;
  readonly jetstream: (connection: C) => JetStreamPublisher;
  readonly headers: () => { set(name: string, value: string): void };
  readonly subject: string | ((event: ReceivedEvent) => string);
  readonly servers?: string | undefined;
}): BridgeTarget {
  requireGiven('jetStreamTarget', target, 'connect', 'jetstream', 'headers', 'subject');
  const { subject } = target;
  const subjectOf = addressOf('jetStreamTarget', 'subject', subject, natsSubject);
  const held = heldConnection(
    async () => {
      const connection = await target.connect(bridgeAddress(target.servers, 'servers').split(','));
      return { connection, stream: target.jetstream(connection) };
    },
    ({ connection }) => connection.close(),
  );
  const messageOf = (entry: BridgedEvent) => {
    const headers = target.headers();
    for (const [name, value] of Object.entries(entry.headers)) headers.set(name, printable(value));
    const options = { msgID: printable(bridgedId(entry)), headers };
    return { subject: subjectOf(entry.event), payload: Buffer.from(entry.body), options: options as never };
  };
  const sendAll = async (messages: readonly ReturnType<typeof messageOf>[]) => {
    try {
      const session = await held.get();
      const { connection, stream } = session;
      const sent = messages.map(({ subject: to, payload, options }) =>
        stream.publish(to, payload, options).then(storedAt, refusalOf),
      );
      return await Promise.all(sent).finally(() => connection.isClosed() && held.drop(session));
    } catch (error) {
      return messages.map(() => refusalOf(error)); // it could not connect
    }
  };
  return {
    name: () => (typeof subject === 'string' ? `subject ${subject}` : 'JetStream'),
    limits: { entries: 100, bytes: Number.POSITIVE_INFINITY },
    cloudEventsPrefix: 'ce-',
    send: (entries) => sendBuilt(entries, messageOf, sendAll),
    reset: () => held.drop(),
  };
}

function storedAt({ stream, seq, duplicate }: Awaited<ReturnType<JetStreamPublisher['publish']>>) {
  return {
    ok: true as const,
    place: { stream, sequence: seq },
    ...(duplicate && { duplicate }),
  } satisfies BridgeResult;
}

function refusalOf(error: unknown): BridgeResult {
  const { code } = Object(error) as { readonly code?: unknown };
  const said = typeof code === 'number' ? String(code) : errorCode(error);
  const refusal = refusedBy(REFUSALS, said, errorMessage(error));
  // The client knows only that nothing has answered.
  const message = 'no stream stores messages of this subject, or JetStream is not enabled';
  return refusal.refusal === 'missing' ? { ...refusal, message } : refusal;
}

/** A header of NATS has one line. CloudEvents encodes other characters than printable ASCII by percent signs. */
function printable(value: string): string {
  return value.replace(/[^\x20-\x7e]|[%"]/gu, (one) => encodeURIComponent(one.replace(/\p{Cs}/u, '\ufffd')));
}
