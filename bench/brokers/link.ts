import type { BrokerLink, BrokerPlace } from './broker-link.ts';
import { jetStreamLink } from './jet-stream-link.ts';
import { kafkaLink } from './kafka-link.ts';
import { rabbitLink } from './rabbit-link.ts';

/** The link to a stream, queue or topic. */
export function linkTo(place: BrokerPlace): BrokerLink {
  switch (place.broker) {
    case 'JetStream':
      return jetStreamLink(place);
    case 'RabbitMQ':
      return rabbitLink(place);
    case 'Kafka':
      return kafkaLink(place);
  }
}
