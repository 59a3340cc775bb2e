import { connect } from 'amqplib';
import { forward, rabbitTarget } from '../../runtime/forward.ts';
import { lambdaConsumer } from '../../runtime/index.ts';
import { BRIDGED } from '../events.ts';

/** The consumer `bridge`, to RabbitMQ. */
export const handler = lambdaConsumer(
  forward({
    to: rabbitTarget({ connect: (url) => connect(url), exchange: 'orders' }),
    events: BRIDGED,
  }),
);
