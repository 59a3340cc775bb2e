import type { Rule } from 'aws-cdk-lib/aws-events';
import type { Alias, Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { Queue } from 'aws-cdk-lib/aws-sqs';
import type { IConstruct } from 'constructs';
import type { ConsumerSlo } from './consumer-slo.ts';

/** A consumer of a `Mailroom` as its alarms and metrics see it. Every `InboxConsumer` is one. */
export interface IInboxConsumer extends IConstruct {
  /** Its name, part of the keys of its inbox rows. */
  readonly name: string;
  /** The service it belongs to. */
  readonly service: string;
  /** Its SLO, if it has one. */
  readonly slo?: ConsumerSlo | undefined;
  /** Its source queue, which receives events from the rules and redriven messages; or its existing queue. */
  readonly queue: Queue;
  /** Messages that SQS moved here after `maxReceiveCount` receives: rejected, or out of attempts. */
  readonly deadLetterQueue: Queue;
  /**
   * Events that EventBridge could not deliver to the queue for a day, or had no permission to deliver. Absent for a consumer of
   * an existing queue.
   */
  readonly undeliveredQueue?: Queue | undefined;
  /** Sends exactly the Mailroom events that the consumer subscribes to. Absent for a consumer of an existing queue. */
  readonly rule?: Rule | undefined;
  /** Sends exactly the foreign events that the consumer subscribes to. Absent if there are none, and for a consumer of an existing queue. */
  readonly foreignRule?: Rule | undefined;
  /** The name of the bus of that rule. */
  readonly foreignBus?: string | undefined;
  /** Runs its handlers. Grant it any access it needs beyond the Mailroom table. */
  readonly function: LambdaFunction;
  /** The alias that its mapping invokes. Absent: the mapping invokes the function itself. */
  readonly alias?: Alias | undefined;
}
