/** A message as a client finds it in a broker. */
export interface Arrived {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The key of a Kafka record, the subject of a NATS message, or the routing key of RabbitMQ. */
  readonly key: string;
}

/** The bodies, in the order of the messages. */
export function bodiesOf(messages: readonly Arrived[]): string[] {
  return messages.map(({ body }) => body);
}
