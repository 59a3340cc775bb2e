import { connect, headers } from 'nats';
import { forward, jetStreamTarget } from '../../runtime/forward.ts';
import { lambdaConsumer } from '../../runtime/index.ts';
import { BRIDGED } from '../events.ts';

/** The consumer `bridge`, to NATS JetStream. */
export const handler = lambdaConsumer(
  forward({
    to: jetStreamTarget({
      connect: (servers) => connect({ servers }),
      headers,
      subject: ({ type }) => `orders.${type}`,
    }),
    events: BRIDGED,
  }),
);
