import { isAccessFault } from '../base/aws-errors.ts';
import { bridgeAddress } from '../base/bridge-address.ts';
import { type Clock, systemClock, withDeadline } from '../base/clock.ts';
import { errorCode, errorMessage } from '../base/errors.ts';
import { requireGiven } from '../base/given-names.ts';
import type { ReceivedEvent } from '../events/event.ts';
import {
  type BridgedEvent,
  type BridgeRefusal,
  type BridgeResult,
  type BridgeTarget,
  refused,
} from './bridge-target.ts';
import { heldConnection } from './held-connection.ts';
import { accepted, addressOf, amqpShortString, sendBuilt } from './message-grammar.ts';

/** The part of a connection of `amqplib` that {@link rabbitTarget} uses. */
export interface RabbitConnection {
  createConfirmChannel(): Promise<RabbitChannel>;
  on(event: 'close' | 'error', listener: () => void): unknown;
  close(): Promise<void>;
  /** The connection below, whose socket (`stream`) is closed if the broker does not answer. */
  readonly connection?: unknown;
}

/** The part of a confirm channel of `amqplib` that {@link rabbitTarget} uses. */
export interface RabbitChannel {
  on(event: 'close', listener: () => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'return', listener: (message: { properties: { messageId?: string } }) => void): unknown;
  publish(
    exchange: string,
    routingKey: string,
    content: Buffer,
    options: object,
    confirmed: (error: unknown) => void,
  ): boolean;
}

/** The time for the broker to answer the end of a connection, milliseconds. */
const CLOSE_MAX_MS = 5_000;

/** A connection with its channel, the messages that were returned there, and the first error. */
interface Session {
  readonly connection: RabbitConnection;
  readonly channel: RabbitChannel;
  readonly returned: Set<string>;
  fault?: unknown;
}

/** The time for each address but the last, milliseconds: with two addresses that hang, the third still has time within `timeoutMs`. */
const ADDRESS_MAX_MS = 3_000;

/**
 * Reply codes of AMQP 0-9-1 (403 a login or a right, 530 a virtual host), RabbitMQ's text for a message above `max_message_size`, and the answer of
 * Secrets Manager to `connect`. A refused login has its code in its text only, and of a refused virtual
 * host `amqplib` keeps only the name of the answer.
 */
function refusalOf(error: unknown): BridgeRefusal {
  const { code } = Object(error);
  if (code === 404) return 'missing';
  if (code === 403 || code === 530 || isAccessFault(errorCode(error))) return 'denied';
  if (/ACCESS[-_]REFUSED|ConnectionOpenOk; got <ConnectionClose/.test(errorMessage(error))) return 'denied';
  return code === 406 && /size/.test(errorMessage(error)) ? 'too-large' : 'unavailable';
}

/**
 * Forwards to an exchange of RabbitMQ. Messages are persistent and mandatory, and a message counts as delivered once the broker has confirmed it
 * and has not returned it. RabbitMQ does not deduplicate; the message id is the event id.
 *
 * @param target.connect - connects to one address: `(url) => connect(url)` of `amqplib`. It may read a secret first
 * @param target.exchange - the name of the exchange
 * @param target.routingKey - the routing key, or a function of the event; an event whose key has more than 255 bytes is rejected @default the event's type
 * @param target.url - the broker's address, `amqps://…`, or several, separated by commas, which are tried in turn (a comma in a password is `%2C`)
 * @default the environment, as `forwardsTo` sets it
 * @param target.clock - @default the machine's clock
 */
export function rabbitTarget(target: {
  readonly connect: (url: string) => Promise<RabbitConnection>;
  readonly exchange: string;
  readonly routingKey?: string | ((event: ReceivedEvent) => string) | undefined;
  readonly url?: string | undefined;
  readonly clock?: Clock | undefined;
}): BridgeTarget {
  requireGiven('rabbitTarget', target, 'connect', 'exchange');
  const { clock = systemClock, exchange, routingKey = ({ type }: ReceivedEvent) => type } = target;
  addressOf('rabbitTarget', 'exchange', exchange, amqpShortString);
  const keyOf = addressOf('rabbitTarget', 'routingKey', routingKey, amqpShortString);
  const sessions = heldConnection(
    async () => {
      const connection = await connectInTurn(
        clock,
        target.connect,
        bridgeAddress(target.url, 'url').split(','),
      );
      connection.on('error', () => {}); // 'close' follows; without a listener, it would end the process
      const channel = await connection.createConfirmChannel().catch((error: unknown) => {
        end(connection);
        throw error;
      });
      const session: Session = { connection, channel, returned: new Set() };
      channel.on('return', ({ properties: { messageId = '' } }) => session.returned.add(messageId));
      channel.on('error', (error) => {
        session.fault = error;
      });
      // An error of the exchange closes the channel only; it is rare, so the connection is renewed, too.
      for (const part of [connection, channel]) part.on('close', () => sessions.drop(session));
      return session;
    },
    ({ connection }) => end(connection),
  );
  const messageOf = (entry: BridgedEvent) => {
    accepted('message id', entry.event.eventId, amqpShortString);
    return { key: keyOf(entry.event), entry };
  };
  const sendOne = async ({ key, entry }: ReturnType<typeof messageOf>): Promise<BridgeResult> => {
    try {
      return await publish(await sessions.get(), exchange, key, entry);
    } catch (error) {
      return refused(refusalOf(error), errorCode(error), errorMessage(error));
    }
  };
  return {
    name: () => `exchange ${exchange}`,
    limits: { entries: 100, bytes: Number.POSITIVE_INFINITY },
    cloudEventsPrefix: 'cloudEvents:',
    send: (entries) => sendBuilt(entries, messageOf, (messages) => Promise.all(messages.map(sendOne))),
    reset: () => sessions.drop(),
  };
}

/** Connects to the first address that answers. A refusal ends it: brokers of a cluster have the same users. */
async function connectInTurn(
  clock: Clock,
  connect: (url: string) => Promise<RabbitConnection>,
  addresses: readonly string[],
): Promise<RabbitConnection> {
  for (const address of addresses.slice(0, -1)) {
    const connecting = connect(address.trim());
    try {
      const connection = await withDeadline(clock, ADDRESS_MAX_MS, connecting, () => undefined);
      if (connection !== undefined) return connection;
      connecting.then(end).catch(() => {});
    } catch (error) {
      if (refusalOf(error) === 'denied') throw error;
    }
  }
  return connect((addresses.at(-1) ?? '').trim());
}

/** Closes a connection, also if its broker hangs: then it never answers the request to close. */
function end(connection: RabbitConnection): void {
  const closed = connection.close().catch(() => {});
  void withDeadline(systemClock, CLOSE_MAX_MS, closed, () =>
    Object(connection.connection).stream?.destroy?.(),
  );
}

function publish(
  session: Session,
  exchange: string,
  key: string,
  entry: BridgedEvent,
): Promise<BridgeResult> {
  const { event, body, headers } = entry;
  const { eventId: messageId, type, occurredAt } = event;
  const timestamp = occurredAt >= 0 ? Math.floor(occurredAt / 1_000) : undefined; // AMQP has no time before 1970
  const options = {
    mandatory: true,
    persistent: true,
    contentType: 'application/json',
    messageId,
    type: Buffer.byteLength(type) <= 255 ? type : undefined, // AMQP's short string
    timestamp,
    headers,
  };
  return new Promise((resolve, reject) => {
    session.channel.publish(exchange, key, Buffer.from(body), options, (error) => {
      // RabbitMQ confirms a returned message, too; the return comes first.
      const isReturned = session.returned.delete(messageId);
      if (error) reject(session.fault ?? error);
      else if (isReturned)
        resolve(
          refused('missing', 'NoRoute', `no queue is bound for the routing key ${JSON.stringify(key)}`),
        );
      else resolve({ ok: true, place: { 'routing key': key } });
    });
  });
}
