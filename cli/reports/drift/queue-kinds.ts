import { isObject } from '../../../lambdas/runtime/base/json.ts';
import type { DeclaredResource } from '../../deployment/declared-resources.ts';
import { asOption, type Member, type ResourceKind } from './resource-kind.ts';
import { isNone, isSame, statementsOf } from './same-value.ts';

const less = (declared: unknown, deployed: unknown) => Number(deployed) < Number(declared);

/** The words that set an attribute of a queue. A shorthand cannot hold JSON, so that is passed as the text of a member. */
function attribute(name: string): Member['set'] {
  return ({ physicalId }, value) => {
    const set = ['aws', 'sqs', 'set-queue-attributes', '--queue-url', physicalId, '--attributes'];
    if (isNone(value)) return []; // the CLI cannot unset it
    const isText = typeof value === 'object';
    return [
      ...set,
      isText ? JSON.stringify({ [name]: JSON.stringify(value) }) : `${name}=${asOption(value)}`,
    ];
  };
}

const EXPIRE = 'messages are permanently deleted before an operator can look at them';

/** Queues and their policies: defaults of https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sqs-queue.html. */
export const queueKinds: Readonly<Record<string, ResourceKind>> = {
  'AWS::SQS::Queue': {
    noun: 'queue',
    identity: ['QueueName'],
    nameOf: ({ physicalId }) => queueName(physicalId),
    call: 'SetQueueAttributes',
    gone: {
      level: 'flow',
      effect: 'messages sent to it are lost. Once it is back, `audit` finds the events that were in it',
      call: 'DeleteQueue',
      saidBy: ['no-queue'],
      losesEvents: true,
    },
    members: {
      VisibilityTimeout: {
        default: 30,
        effect: (declared, deployed) =>
          less(declared, deployed)
            ? 'SQS redelivers messages that are still being processed, and they use up their receives'
            : 'after a crash, messages wait longer',
        set: attribute('VisibilityTimeout'),
      },
      MessageRetentionPeriod: {
        default: 345_600,
        level: 'flow',
        effect: (declared, deployed) =>
          less(declared, deployed)
            ? EXPIRE
            : 'a message may be redriven after its inbox row expired, and is then rejected as too old',
        set: attribute('MessageRetentionPeriod'),
        losesEvents: true,
      },
      DelaySeconds: {
        default: 0,
        effect: 'every message waits for that many seconds',
        set: attribute('DelaySeconds'),
      },
      MaximumMessageSize: {
        default: 1_048_576,
        level: 'flow',
        effect: 'it refuses larger events, which the outbox and the bus accept',
        set: attribute('MaximumMessageSize'),
      },
      ReceiveMessageWaitTimeSeconds: { default: 0, set: attribute('ReceiveMessageWaitTimeSeconds') },
      KmsMasterKeyId: {
        form: 'key',
        level: 'flow',
        effect: 'senders and readers that may not use the other key are refused',
      },
      KmsDataKeyReusePeriodSeconds: { default: 300, set: attribute('KmsDataKeyReusePeriodSeconds') },
      RedrivePolicy: {
        level: 'flow',
        effect: 'messages are dead-lettered before their attempts are used up, or elsewhere, or never',
        set: attribute('RedrivePolicy'),
      },
      RedriveAllowPolicy: {
        default: { redrivePermission: 'allowAll' },
        level: 'flow',
        effect:
          'SQS refuses dead letters of a queue that it does not allow, and lets in those of others that it does',
        set: attribute('RedriveAllowPolicy'),
      },
      FifoQueue: { default: false },
      ContentBasedDeduplication: { default: false },
    },
  },
  'AWS::SQS::QueuePolicy': {
    noun: 'policy of the queue',
    identity: ['Queues'],
    nameOf: ({ properties: { Queues }, physicalId }) =>
      (Array.isArray(Queues) ? Queues : [physicalId]).map((url) => queueName(String(url))).join(', '),
    call: 'SetQueueAttributes',
    gone: {
      level: 'flow',
      effect: 'its rule may not send to it, and every caller of the account whose own policies allow it may',
      losesEvents: true,
    },
    members: {
      PolicyDocument: {
        form: 'policy',
        level: 'flow',
        effect: (declared, deployed) =>
          deniesMore(declared, deployed)
            ? 'its rule may not send to it, or its function may not receive, so events do not arrive'
            : 'senders or readers that need the queue are refused, or others can forge events',
        losesEvents: true,
      },
    },
  },
};

/** True if AWS's policy denies something that the template's does not. */
function deniesMore(declared: unknown, deployed: unknown): boolean {
  const denied = (policy: unknown) =>
    statementsOf(policy).filter(
      (one) => isObject(one) && String((one as { Effect?: unknown }).Effect) === 'Deny',
    );
  return denied(deployed).some((one) => !denied(declared).some((other) => isSame(other, one)));
}

/** The name at the end of a queue's URL. */
function queueName(url: DeclaredResource['physicalId']): string {
  return url.slice(url.lastIndexOf('/') + 1);
}
