import { Kafka } from 'kafkajs';
import { forward, kafkaTarget } from '../../runtime/forward.ts';
import { lambdaConsumer } from '../../runtime/index.ts';
import { BRIDGED } from '../events.ts';

/** The consumer `bridge`, to Kafka. */
export const handler = lambdaConsumer(
  forward({
    to: kafkaTarget({ client: (brokers) => new Kafka({ clientId: 'orders', brokers }), topic: 'orders' }),
    events: BRIDGED,
  }),
);
