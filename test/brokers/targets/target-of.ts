import { jetstream } from '@nats-io/jetstream';
import { connect as connectNats, headers } from '@nats-io/transport-node';
import { connect as connectRabbit } from 'amqplib';
import { Kafka, logLevel } from 'kafkajs';
import {
  type BridgeTarget,
  jetStreamTarget,
  kafkaTarget,
  kinesisTarget,
  rabbitTarget,
  snsTarget,
  sqsTarget,
} from '../../../lambdas/runtime/bridge.ts';
import type { NatsAddress } from '../servers/nats-broker.ts';
import { awsClients } from './aws-clients.ts';

/** A topic, subject or exchange to forward to, as JSON: it is passed to other processes. */
export type TargetPlace =
  | {
      readonly kind: 'kafka';
      readonly brokers: string;
      readonly topic: string;
      readonly user?: { readonly username: string; readonly password: string };
    }
  | ({ readonly kind: 'jet-stream'; readonly subject: string } & NatsAddress)
  | { readonly kind: 'rabbit'; readonly url: string; readonly exchange: string }
  | { readonly kind: 'sqs'; readonly endpoint: string; readonly queueUrl: string }
  | { readonly kind: 'sns'; readonly endpoint: string; readonly topicArn: string }
  | { readonly kind: 'kinesis'; readonly endpoint: string; readonly streamName: string };

/** The target of a bridge, with the clients that the documentation names. */
export function targetOf(place: TargetPlace): BridgeTarget {
  switch (place.kind) {
    case 'kafka': {
      const sasl = place.user && ({ mechanism: 'plain', ...place.user } as const);
      const client = (brokers: string[]) => new Kafka({ brokers, sasl, logLevel: logLevel.NOTHING });
      return kafkaTarget({ client, topic: place.topic, brokers: place.brokers });
    }
    case 'jet-stream': {
      const { user, pass, subject } = place;
      const connect = (servers: string[]) => connectNats({ servers, user, pass });
      return jetStreamTarget({ connect, jetstream, headers, subject, servers: place.servers });
    }
    case 'rabbit':
      return rabbitTarget({ connect: connectRabbit, exchange: place.exchange, url: place.url });
    case 'sqs':
      return sqsTarget({ client: awsClients(place.endpoint).sqs, queueUrl: place.queueUrl });
    case 'sns':
      return snsTarget({ client: awsClients(place.endpoint).sns, topicArn: place.topicArn });
    case 'kinesis':
      return kinesisTarget({ client: awsClients(place.endpoint).kinesis, streamName: place.streamName });
  }
}
