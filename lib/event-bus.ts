import { Names } from 'aws-cdk-lib';
import { EventBus } from 'aws-cdk-lib/aws-events';
import { Grant, type IGrantable } from 'aws-cdk-lib/aws-iam';
import type { Construct } from 'constructs';

/**
 * The bus: every published event passes it once for each publish, and every consumer has a rule on it.
 *
 * @example
 * ```ts
 * const bus = new MailroomBus(this, 'Bus');
 * bus.grantPublish(publisher);
 * ```
 */
export class MailroomBus extends EventBus {
  constructor(scope: Construct, id: string) {
    super(scope, id, {
      eventBusName: busName(scope, id),
      description: 'Events that a Mailroom outbox has published.',
    });
  }

  /** Lets it put events on this bus, and on no other. */
  grantPublish(grantee: IGrantable): Grant {
    return Grant.addToPrincipal({
      grantee,
      actions: ['events:PutEvents'],
      resourceArns: [this.eventBusArn],
    });
  }
}

/** A bus must have a name, and the one that the CDK would give is the same in every stage of an account. */
function busName(scope: Construct, id: string): string {
  return `${Names.uniqueResourceName(scope, { maxLength: 200, separator: '-', allowedSpecialCharacters: '-' })}-${id}`;
}
