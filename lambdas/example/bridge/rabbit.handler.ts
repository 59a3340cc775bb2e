import { connect } from 'amqplib';
import { bridge, rabbitTarget } from '../../runtime/bridge.ts';
import { lambdaConsumer } from '../../runtime/index.ts';
import { BRIDGED } from '../events.ts';

/** The consumer `bridge`, to RabbitMQ. */
export const handler = lambdaConsumer(
  bridge({
    to: rabbitTarget({ connect: (url) => connect(url), exchange: 'orders' }),
    events: BRIDGED,
  }),
);
