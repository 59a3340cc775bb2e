import {
  type BridgeTarget,
  jetStreamTarget,
  kafkaTarget,
  kinesisTarget,
  rabbitTarget,
  snsTarget,
  sqsTarget,
} from '../../lambdas/runtime/bridge.ts';
import { describeBridge } from './bridge-contract.ts';
import {
  type Broker,
  broker,
  kafkaDouble,
  kinesisDouble,
  natsDouble,
  rabbitDouble,
  snsDouble,
  sqsDouble,
} from './bridge-doubles.ts';
import type { Differences } from './cases.ts';

const targets: readonly (readonly [name: string, make: (side: Broker) => BridgeTarget, Differences?])[] = [
  ['SQS, standard', (side) => sqsTarget({ client: sqsDouble(side), queueUrl: 'https://sqs/1/partner' })],
  ['SQS, FIFO', (side) => sqsTarget({ client: sqsDouble(side), queueUrl: 'https://sqs/1/partner.fifo' })],
  ['SNS, standard', (side) => snsTarget({ client: snsDouble(side), topicArn: 'arn:aws:sns:eu:1:orders' })],
  ['SNS, FIFO', (side) => snsTarget({ client: snsDouble(side), topicArn: 'arn:aws:sns:eu:1:orders.fifo' })],
  ['Kinesis', (side) => kinesisTarget({ client: kinesisDouble(side), streamName: 'orders' })],
  ['Kafka', (side) => kafkaTarget({ client: kafkaDouble(side), topic: 'orders', brokers: 'b1,b2' })],
  ['NATS JetStream', (side) => jetStreamTarget({ ...natsDouble(side), subject: 'orders', servers: 'n1' })],
  [
    'RabbitMQ',
    (side) => rabbitTarget({ connect: rabbitDouble(side), exchange: 'contract', url: 'amqp://r1' }),
  ],
];

for (const [name, make] of targets) {
  describeBridge(`forwarding to a double of ${name}`, async () => {
    const side = broker();
    return {
      subject: {
        target: make(side),
        arrived: async () => side.messages,
        fault: async (fault) => {
          side.fault = fault;
        },
      },
      remove: async () => undefined,
    };
  });
}
