import { SSMClient } from '@aws-sdk/client-ssm';
import { describe, expect, it } from 'vitest';
import { clientSettings } from '../../lambdas/runtime/base/client-settings.ts';
import { readDirectory } from '../../lambdas/runtime/operations/ssm-directory.ts';
import { directory as small, worker } from '../unit/cli/support/mailroom-in-memory.ts';

const ACCOUNT = '111122223333';
const QUEUE = `https://sqs.eu-west-1.amazonaws.com/${ACCOUNT}/payments`;

/** Parameter Store, as far as a page of parameters goes. */
const store = (consumer: object, mailroom: object = {}): SSMClient => {
  const parameters = {
    '/mailroom/events/mailroom': { ...small.mailroom, table: 'events', failureQueue: QUEUE, ...mailroom },
    '/mailroom/events/consumers/payments': consumer,
  };
  const Parameters = Object.entries(parameters).map(([Name, value]) => ({
    Name,
    Value: JSON.stringify(value),
    ARN: `arn:aws:ssm:eu-west-1:${ACCOUNT}:parameter${Name}`,
  }));
  return Object.assign(new SSMClient({ region: 'eu-west-1' }), { send: async () => ({ Parameters }) });
};
const queues = {
  ...worker,
  events: [],
  name: 'payments',
  queue: QUEUE,
  deadLetterQueue: QUEUE,
  undeliveredQueue: QUEUE,
};

describe('a directory entry that was changed by an attacker', () => {
  it.each(['queue', 'deadLetterQueue', 'undeliveredQueue'])(
    'cannot name a queue of another account as its %s',
    async (member) => {
      const external = 'https://sqs.eu-west-1.amazonaws.com/999988887777/payments';
      await expect(readDirectory(store({ ...queues, [member]: external }), 'events')).rejects.toThrow(
        `The parameter /mailroom/events/consumers/payments names "${external}" as its ${member}, which is not a queue of the account ${ACCOUNT}.`,
      );
    },
  );

  it.each([
    ['nothing that is a URL', 'payments'],
    ['an account in the host or the query', `https://${ACCOUNT}/999988887777/q?/${ACCOUNT}/q`],
    ['a path below the queue', `${QUEUE}/../../999988887777/q`],
    ['a number', 7],
    [
      'another account in the path form of a local engine',
      'http://localhost:4566/queue/eu-west-1/999988887777/q',
    ],
    ['the path form at a host that is not local', `https://example.com/queue/eu-west-1/${ACCOUNT}/q`],
    [
      'the path form at a host that only begins like a local one',
      `http://localhost.example.com/queue/eu-west-1/${ACCOUNT}/q`,
    ],
    [
      'the path form at a host that only ends like a local one',
      `http://evil-localhost/queue/eu-west-1/${ACCOUNT}/q`,
    ],
    ['a local host as the user of another', `http://localhost:4566@example.com/queue/eu-west-1/${ACCOUNT}/q`],
    ['an account in the place of the region', `http://localhost:4566/queue/${ACCOUNT}/999988887777/q`],
    ['a path below the path form', `http://localhost:4566/queue/eu-west-1/${ACCOUNT}/q/../../999988887777/q`],
    ['a second line', `${QUEUE}\nhttp://localhost:4566/queue/eu-west-1/999988887777/q`],
  ])('a directory entry is refused with %s', async (_what, queue) => {
    await expect(readDirectory(store({ ...queues, queue }), 'events')).rejects.toThrow(
      /is not a queue of the account/,
    );
  });

  const arnOf = (service: string, account: string, part: string, region = 'eu-west-1') =>
    `arn:aws:${service}:${region}:${account}:${part}`;
  const externalFunction = arnOf('lambda', '999988887777', 'function:collector');

  it.each([
    ['a function of another account', { function: externalFunction }, 'function', 'function'],
    ['a function by the ARN of its alias', { function: `${externalFunction}:live` }, 'function', 'function'],
    ['a function without the ARN', { function: '999988887777:function:collector' }, 'function', 'function'],
    [
      'a function of another region',
      { function: arnOf('lambda', ACCOUNT, 'function:payments', 'us-east-1') },
      'function',
      'function',
    ],
    [
      'an alias that completes an ARN',
      { function: '999988887777', alias: 'function:collector' },
      'alias',
      'function',
    ],
    [
      'an alias that ends an ARN',
      { function: '999988887777:function', alias: 'collector' },
      'alias',
      'function',
    ],
    ['a function that is a list', { function: [externalFunction] }, 'function', 'function'],
    ['a rule of another account', { rule: arnOf('events', '999988887777', 'rule/bus/r') }, 'rule', 'rule'],
    [
      'a bus of another account',
      { externalRule: { name: 'r', bus: arnOf('events', '999988887777', 'event-bus/b') } },
      'externalRule.bus',
      'bus',
    ],
    [
      'a rule of external events in another region',
      { externalRule: { name: arnOf('events', ACCOUNT, 'rule/b/r', 'us-east-1'), bus: 'b' } },
      'externalRule.name',
      'rule',
    ],
    [
      'a stack of another account',
      { stack: arnOf('cloudformation', '999988887777', 'stack/s/1') },
      'stack',
      'stack',
    ],
  ])('cannot name %s', async (_what, members, path, kind) => {
    await expect(readDirectory(store({ ...queues, ...members }), 'events')).rejects.toThrow(
      new RegExp(
        `^The parameter /mailroom/events/consumers/payments names .* as its ${path}, which is not a ${kind} of the account ${ACCOUNT} in eu-west-1`,
      ),
    );
  });

  it.each([
    ['table', { table: arnOf('dynamodb', '999988887777', 'table/events') }],
    ['bus', { bus: arnOf('events', '999988887777', 'event-bus/events') }],
    ['streamFunction', { streamFunction: externalFunction }],
    ['sweepFunction', { sweepFunction: externalFunction }],
    ['sweepRule', { sweepRule: arnOf('events', '999988887777', 'rule/r') }],
    ['heartbeat.function', { heartbeat: { function: externalFunction } }],
    ['heartbeat.rule', { heartbeat: { rule: arnOf('events', '999988887777', 'rule/r') } }],
    ['failureQueue', { failureQueue: 'https://sqs.eu-west-1.amazonaws.com/999988887777/q' }],
  ])("the Mailroom's entry cannot name a resource of another account as its %s", async (path, members) => {
    await expect(readDirectory(store(queues, members), 'events')).rejects.toThrow(
      new RegExp(`^The parameter /mailroom/events/mailroom names .* as its ${path}, which is not a `),
    );
  });

  it.each([
    { function: 'payments' },
    { function: 'payments', alias: 'live' },
    { function: 'payments:live' },
    { function: 'payments:$LATEST' },
    { function: `${ACCOUNT}:function:payments` },
    { function: arnOf('lambda', ACCOUNT, 'function:payments') },
    { function: arnOf('lambda', ACCOUNT, 'function:payments'), alias: 'live' },
    { function: arnOf('lambda', ACCOUNT, 'function:payments:live') },
    { function: `arn:aws-us-gov:lambda:eu-west-1:${ACCOUNT}:function:payments` },
    { externalRule: { name: 'rule', bus: 'aws.partner/example.com/1' } },
    { externalRule: { name: 'rule', bus: arnOf('events', ACCOUNT, 'event-bus/shop') } },
  ])('an entry with resources of its own account and region is accepted: %j', async (members) => {
    const { consumers } = await readDirectory(store({ ...queues, ...members }), 'events');
    expect(consumers).toEqual([expect.objectContaining(members)]);
  });

  it('an entry is accepted as long as its queues are in its own account', async () => {
    const { consumers } = await readDirectory(store(queues), 'events');
    expect(consumers).toEqual([expect.objectContaining(queues)]);
  });

  it.each([
    `http://sqs.eu-west-1.localhost.localstack.cloud:4566/${ACCOUNT}/payments`,
    `http://eu-west-1.queue.localhost.localstack.cloud:4566/${ACCOUNT}/payments`,
    `http://localhost.localstack.cloud:4566/queue/eu-west-1/${ACCOUNT}/payments`,
    `http://localhost:4566/queue/eu-west-1/${ACCOUNT}/payments`,
    `http://127.0.0.1:4566/queue/eu-west-1/${ACCOUNT}/payments.fifo`,
    `http://127.0.0.1:4566/${ACCOUNT}/payments`,
  ])('an entry with the URL of a local engine is accepted: %s', async (queue) => {
    const { consumers } = await readDirectory(store({ ...queues, queue }), 'events');
    expect(consumers).toEqual([expect.objectContaining({ queue })]);
  });

  it('cannot lead a client to a host: every client goes to the endpoint of its region', () => {
    expect(clientSettings.useQueueUrlAsEndpoint).toBe(false);
  });
});
