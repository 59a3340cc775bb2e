import { jetstream } from '@nats-io/jetstream';
import { connect, headers } from '@nats-io/transport-node';
import { bridge, jetStreamTarget } from '../../runtime/bridge.ts';
import { lambdaConsumer } from '../../runtime/index.ts';
import { BRIDGED } from '../events.ts';

/** The consumer `bridge`, to NATS JetStream. */
export const handler = lambdaConsumer(
  bridge({
    to: jetStreamTarget({
      connect: (servers) => connect({ servers }),
      jetstream,
      headers,
      subject: ({ type }) => `orders.${type}`,
    }),
    events: BRIDGED,
  }),
);
