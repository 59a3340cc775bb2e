import { Construct } from 'constructs';
import { nameProblems, type PropNames } from '../../lambdas/runtime/base/given-names.ts';
import { functionNameProblems, type PassedFunctionProps } from '../functions/function-props.ts';
import type {
  ConsumerFunctionProps,
  ConsumerQueueProps,
  InboxConsumerProps,
  RetryOptions,
} from './inbox-consumer-props.ts';

/** The settings of a consumer at run time: JavaScript and casts can pass others. */
const CONSUMER: PropNames<InboxConsumerProps> = {
  mailroom: 'required',
  name: 'required',
  service: 'required',
  events: 'required',
  publishes: 'optional',
  domainKeys: 'optional',
  entry: 'optional',
  order: 'optional',
  function: 'optional',
  queue: 'optional',
  retry: 'optional',
  slo: 'optional',
  removalPolicy: 'optional',
  forwardsTo: 'optional',
  externalBus: 'optional',
  lease: 'optional',
  inboxRetention: 'optional',
  movedFrom: 'optional',
};

/** The settings of `function` that are not passed on to the CDK. */
const OWN_FUNCTION: PropNames<Omit<ConsumerFunctionProps, keyof PassedFunctionProps>> = {
  timeout: 'optional',
  memoryMb: 'optional',
  environment: 'optional',
  bundling: 'optional',
  existing: 'optional',
  alias: 'optional',
  checkHandlers: 'optional',
};

const QUEUE: PropNames<ConsumerQueueProps> = {
  batchSize: 'optional',
  batchingWindow: 'optional',
  maxConcurrency: 'optional',
  visibilityTimeout: 'optional',
  retention: 'optional',
  deadLetterRetention: 'optional',
  fairBy: 'optional',
  deliveryDelay: 'optional',
  existing: 'optional',
  dataKeyReuse: 'optional',
};

const RETRY: PropNames<RetryOptions> = {
  maxAttempts: 'optional',
  first: 'optional',
  longest: 'optional',
  outageTolerance: 'optional',
};

const GROUPS = { function: OWN_FUNCTION, queue: QUEUE, retry: RETRY } as const;

/** The group of each setting, for one that was passed beside its group. */
const PLACES: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(GROUPS).flatMap(([group, settings]) =>
    Object.keys(settings).map((name) => [name, `Use ${group}.${name}.`]),
  ),
);

/** Alternatives to properties of a queue that people look for. */
const INSTEAD_IN_QUEUE: Readonly<Record<string, string>> = {
  contentBasedDeduplication: 'The inbox drops duplicates.',
  deadLetterQueue: 'The consumer creates it, and derives its maxReceiveCount from retry.',
  encryption: 'Set encryptionKey of the Mailroom, so that its rule and its sweep may use the key.',
  encryptionMasterKey: 'Set encryptionKey of the Mailroom, so that its rule and its sweep may use the key.',
  enforceSSL: 'The queues always require TLS.',
  fifo: 'EventBridge delivers events in any order. Set order: strict() to apply them in theirs.',
  maxMessageSizeBytes: 'With less than 1 MiB, large events would not be delivered.',
  queueName: 'The name is derived from the stack, so that a retained queue does not block a new deployment.',
  redriveAllowPolicy:
    'The dead-letter queue accepts messages of its source queue only, and the other queues are dead-letter queues of none.',
  removalPolicy: 'Use removalPolicy of the consumer.',
  retentionPeriod: 'Use queue.retention and queue.deadLetterRetention.',
};

/** Validates the names of a consumer's settings, which the compiler does not check in JavaScript. */
export function settingNameProblems(props: InboxConsumerProps): string[] {
  const { function: own, queue, retry } = Object(props) as InboxConsumerProps;
  return [
    ...nameProblems(props, CONSUMER, '', PLACES),
    ...(constructProblems('function', own) ?? functionNameProblems(own, 'function', OWN_FUNCTION)),
    ...(constructProblems('queue', queue) ?? nameProblems(queue, QUEUE, 'queue.', INSTEAD_IN_QUEUE)),
    ...nameProblems(retry, RETRY, 'retry.', { attempts: 'Use retry.maxAttempts.' }),
  ];
}

function constructProblems(group: string, given: unknown): string[] | undefined {
  if (!Construct.isConstruct(given)) return undefined;
  return [`${group} is ${given.node.path}, but takes settings. Pass it as ${group}.existing.`];
}
