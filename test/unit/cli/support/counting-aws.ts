import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { encodeRulePattern } from '../../../../lambdas/runtime/bus/rule-pattern.ts';
import {
  type ConsumerEntry,
  consumerEntryName,
  type MailroomEntry,
  mailroomEntryName,
} from '../../../../lambdas/runtime/operations/directory.ts';
import { STREAM_FILTER } from '../../../../lambdas/runtime/relay/stream-settings.ts';

/** The Mailroom of an order system, as large as ours. */
const MAILROOM: MailroomEntry = {
  stack: 'mailroom-prod',
  table: 'orders-table',
  bus: 'orders-bus',
  shards: 8,
  streamFunction: 'stream-function',
  sweepFunction: 'sweep-function',
  sweepRule: 'sweep-rule',
  failureQueue: 'https://sqs/failures',
};

const consumerNamed = (name: string): ConsumerEntry => ({
  stack: 'orders-prod',
  name,
  service: name,
  events: [{ source: 'orders', type: 'OrderPlaced' }],
  rule: `orders-bus|${name}-rule`,
  queue: `https://sqs/${name}`,
  deadLetterQueue: `https://sqs/${name}-dead-letters`,
  undeliveredQueue: `https://sqs/${name}-undelivered`,
  function: `${name}-function`,
  maxAttempts: 5,
  inboxRetentionDays: 35,
});

const CONSUMERS = ['payments', 'stock', 'shipping', 'mailer', 'ledger'].map(consumerNamed);

const arnOf = (service: string, resource: string) => `arn:aws:${service}:eu-west-1:111122223333:${resource}`;

type Body = Readonly<Record<string, string>>;

const ruleNamed = (Name: string) => ({
  Name,
  State: 'ENABLED',
  EventPattern: JSON.stringify(encodeRulePattern([{ source: 'orders', type: 'OrderPlaced' }])),
});

/** The answers of a Mailroom without events whose parts are as declared. */
const ANSWERS: Readonly<Record<string, (body: Body) => object>> = {
  GetParametersByPath: () => ({
    Parameters: [
      { Name: mailroomEntryName(MAILROOM.table), Value: JSON.stringify(MAILROOM) },
      ...CONSUMERS.map((entry) => ({
        Name: consumerEntryName(MAILROOM.table, entry.name),
        Value: JSON.stringify(entry),
      })),
    ],
  }),
  Query: () => ({ Items: [], Count: 0 }),
  ExecuteStatement: () => ({ Items: [] }),
  GetItem: ({ Key }) => ({
    Item: {
      ...Object(Key),
      sweptTo: { N: String(Date.now() - 30_000) },
      shards: { N: '8' },
      schema: { N: '1' },
    },
  }),
  DescribeTable: () => ({
    Table: {
      CreationDateTime: Date.now() / 1_000 - 60,
      TableArn: arnOf('dynamodb', `table/${MAILROOM.table}`),
      StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_IMAGE' },
      LatestStreamArn: arnOf('dynamodb', `table/${MAILROOM.table}/stream/1`),
    },
  }),
  DescribeTimeToLive: () => ({
    TimeToLiveDescription: { TimeToLiveStatus: 'ENABLED', AttributeName: 'expiresAt' },
  }),
  GetQueueAttributes: ({ QueueUrl = '' }) => ({
    Attributes: {
      QueueArn: arnOf('sqs', QueueUrl.split('/').at(-1) ?? ''),
      MessageRetentionPeriod: '1209600',
    },
  }),
  DescribeEventBus: ({ Name = '' }) => ({ Name }),
  DescribeRule: ({ Name = '' }) => ruleNamed(Name),
  ListRules: () => ({ Rules: CONSUMERS.map(({ name }) => ruleNamed(`${name}-rule`)) }),
  ListTargetsByRule: ({ Rule = '' }) => ({
    Targets: [
      Rule === 'sweep-rule'
        ? { Id: '1', Arn: arnOf('lambda', 'function:sweep-function') }
        : { Id: '1', Arn: arnOf('sqs', Rule.replace(/-rule$/, '')) },
    ],
  }),
  ListEventSourceMappings: () => ({
    EventSourceMappings: [MAILROOM.streamFunction, ...CONSUMERS.map((one) => one.function)].map(
      (FunctionName) => ({
        UUID: FunctionName,
        FunctionArn: arnOf('lambda', `function:${FunctionName}`),
        State: 'Enabled',
        ...(FunctionName === MAILROOM.streamFunction
          ? {
              EventSourceArn: arnOf('dynamodb', `table/${MAILROOM.table}/stream/1`),
              FilterCriteria: { Filters: [{ Pattern: JSON.stringify(STREAM_FILTER) }] },
            }
          : { EventSourceArn: arnOf('sqs', FunctionName.replace(/-function$/, '')) }),
      }),
    ),
  }),
  GetFunctionConcurrency: () => ({}),
  GetFunctionConfiguration: () => ({ Timeout: 30, Role: 'role', Environment: { Variables: {} } }),
};

/** The time without a new request after which those that were received are answered, milliseconds: a request that waits for another comes later. */
const QUIET_MS = 100;

/** An AWS in this process that answers all requests of a moment together, and counts what it is asked. */
export async function countingAws() {
  const operations: string[] = [];
  let rounds = 0;
  let held: (() => void)[] = [];
  let timer: NodeJS.Timeout | undefined;
  const answerHeld = () => {
    const answering = held;
    held = [];
    rounds += 1;
    for (const answer of answering) answer();
  };
  const server = createServer(async (received, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of received) chunks.push(chunk);
    const operation = operationOf(received);
    operations.push(operation);
    const answer = ANSWERS[operation];
    const query = Object.fromEntries(new URL(received.url ?? '/', 'http://aws').searchParams);
    const body = chunks.length === 0 ? query : JSON.parse(Buffer.concat(chunks).toString());
    held.push(() => {
      response.writeHead(answer === undefined ? 400 : 200, { 'content-type': 'application/x-amz-json-1.0' });
      response.end(JSON.stringify(answer?.(body) ?? { __type: 'UnknownOperation' }));
    });
    clearTimeout(timer);
    timer = setTimeout(answerHeld, QUIET_MS);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: `http://127.0.0.1:${port}`,
    /** The operation of each request. */
    operations,
    /** The number of requests of an operation. */
    count: (operation: string) => operations.filter((one) => one === operation).length,
    /** How many times requests waited for the answers to earlier ones, and one. */
    rounds: () => rounds,
    close: () => {
      clearTimeout(timer);
      server.close();
      server.closeAllConnections();
    },
  };
}

/** The JSON protocols name the operation in a header, and Lambda in its path. */
function operationOf({ headers, url = '' }: IncomingMessage): string {
  const named = headers['x-amz-target'];
  if (typeof named === 'string') return named.slice(named.lastIndexOf('.') + 1);
  if (url.includes('/event-source-mappings')) return 'ListEventSourceMappings';
  if (url.endsWith('/concurrency')) return 'GetFunctionConcurrency';
  if (url.includes('/configuration')) return 'GetFunctionConfiguration';
  return url;
}
