import { Kinesis } from '@aws-sdk/client-kinesis';
import { SNS } from '@aws-sdk/client-sns';
import { SQS } from '@aws-sdk/client-sqs';
import { bridge, kinesisTarget, snsTarget, sqsTarget } from '../../../lambdas/runtime/bridge.ts';
import { clientSettings, lambdaConsumer } from '../../../lambdas/runtime/index.ts';
import { Booked } from './booked.ts';

/** The targets by the names of their consumers: one bundle for all bridges. */
const targets = {
  'to-queue': () => sqsTarget({ client: new SQS(clientSettings) }),
  'to-topic': () => snsTarget({ client: new SNS(clientSettings) }),
  'to-stream': () => kinesisTarget({ client: new Kinesis(clientSettings) }),
};

const to = targets[process.env.BRIDGE as keyof typeof targets]();

export const handler = lambdaConsumer(bridge({ to, events: [Booked] }));
