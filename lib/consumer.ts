import type { Rule } from 'aws-cdk-lib/aws-events';
import type { Queue } from 'aws-cdk-lib/aws-sqs';
import type { IConstruct } from 'constructs';
import type { ConsumerSlo } from './consumer-slo.ts';
import type { ServiceFunction } from './service-function.ts';

/** A consumer of a `Mailroom`, as its alarms and metrics see it: every `InboxConsumer` is one. */
export interface IInboxConsumer extends IConstruct {
  /** Its name, part of the keys of its inbox rows. */
  readonly name: string;
  /** The service it belongs to. */
  readonly service: string;
  /** Its SLO, if it has one. */
  readonly slo?: ConsumerSlo | undefined;
  /** Its messages: what the rule sends, and what is redriven. */
  readonly queue: Queue;
  /** Messages that SQS moved after `maxReceiveCount` receives: poison, or out of attempts. */
  readonly deadLetterQueue: Queue;
  /** Events that EventBridge could not hand to the queue for a day, or was not allowed to. */
  readonly undeliveredQueue: Queue;
  /** Sends the events that it subscribes to, and no others, to the queue. */
  readonly rule: Rule;
  /** Runs its handlers. Grant it what they need beside the Mailroom table. */
  readonly function: ServiceFunction;
}
