import { connect as connectRabbit } from 'amqplib';
import { Kafka, logLevel } from 'kafkajs';
import { connect as connectNats, headers } from 'nats';
import {
  type ForwardTarget,
  jetStreamTarget,
  kafkaTarget,
  rabbitTarget,
} from '../../../lambdas/runtime/forward.ts';
import type { NatsAddress } from '../servers/nats-broker.ts';

/** A topic, subject or exchange to forward to, as JSON: it is passed to other processes. */
export type TargetPlace =
  | {
      readonly kind: 'kafka';
      readonly brokers: string;
      readonly topic: string;
      readonly user?: { readonly username: string; readonly password: string };
    }
  | ({ readonly kind: 'jet-stream'; readonly subject: string } & NatsAddress)
  | { readonly kind: 'rabbit'; readonly url: string; readonly exchange: string };

/** The target of a bridge, with the clients that the documentation names. */
export function targetOf(place: TargetPlace): ForwardTarget {
  switch (place.kind) {
    case 'kafka': {
      const sasl = place.user && ({ mechanism: 'plain', ...place.user } as const);
      const client = (brokers: string[]) => new Kafka({ brokers, sasl, logLevel: logLevel.NOTHING });
      return kafkaTarget({ client, topic: place.topic, brokers: place.brokers });
    }
    case 'jet-stream': {
      const { user, pass, subject } = place;
      const connect = (servers: string[]) => connectNats({ servers, user, pass });
      return jetStreamTarget({ connect, headers, subject, servers: place.servers });
    }
    case 'rabbit':
      return rabbitTarget({ connect: connectRabbit, exchange: place.exchange, url: place.url });
  }
}
