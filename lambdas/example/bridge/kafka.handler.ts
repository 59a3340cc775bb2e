import { Kafka } from 'kafkajs';
import { bridge, kafkaTarget } from '../../runtime/bridge.ts';
import { lambdaConsumer } from '../../runtime/index.ts';
import { BRIDGED } from '../events.ts';

/** The consumer `bridge`, to Kafka. */
export const handler = lambdaConsumer(
  bridge({
    to: kafkaTarget({ client: (brokers) => new Kafka({ clientId: 'orders', brokers }), topic: 'orders' }),
    events: BRIDGED,
  }),
);
