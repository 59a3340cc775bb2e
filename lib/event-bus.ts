import { type Duration, Lazy, Names, RemovalPolicy } from 'aws-cdk-lib';
import { CfnArchive, EventBus } from 'aws-cdk-lib/aws-events';
import { Grant, type IGrantable } from 'aws-cdk-lib/aws-iam';
import type { Construct } from 'constructs';

/** What a {@link MailroomBus} may be told. */
export interface MailroomBusProps {
  /**
   * What becomes of the bus and its archive when their stack is deleted. A kept bus keeps its name: to deploy it again,
   * import it or delete it first.
   *
   * @default RETAIN_ON_UPDATE_OR_DELETE
   */
  readonly removalPolicy?: RemovalPolicy;
  /** For how long every event of the bus is kept to be replayed, in whole days. @default no archive */
  readonly archive?: Duration;
}

/** No service can have this name: an empty list would be left out of the policy, and its condition with it. */
const NO_SOURCE = '(none)';

/**
 * The bus: every published event passes it once for each publish, and every consumer has a rule on it.
 *
 * @example
 * ```ts
 * const bus = new MailroomBus(this, 'Bus');
 * bus.grantPublish(publisher, () => ['orders']);
 * ```
 */
export class MailroomBus extends EventBus {
  constructor(scope: Construct, id: string, props: MailroomBusProps = {}) {
    super(scope, id, {
      eventBusName: busName(scope, id),
      description: 'Events that a Mailroom outbox has published.',
    });
    const removalPolicy = props.removalPolicy ?? RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE;
    this.applyRemovalPolicy(removalPolicy);
    if (props.archive === undefined) return;
    // Without a pattern it takes every event; the construct of a higher level demands one.
    const archive = new CfnArchive(this, 'Archive', {
      sourceArn: this.eventBusArn,
      description: 'Every event of the bus, to be replayed to a consumer that has not seen it.',
      retentionDays: props.archive.toDays(),
    });
    archive.applyRemovalPolicy(removalPolicy);
  }

  /**
   * Lets it put events of these sources on this bus, and on no other. A call that holds one event of another source is denied
   * as a whole.
   *
   * @param sources - read at synth, when every producer is known
   */
  grantPublish(grantee: IGrantable, sources: () => readonly string[]): Grant {
    return Grant.addToPrincipal({
      grantee,
      actions: ['events:PutEvents'],
      resourceArns: [this.eventBusArn],
      conditions: {
        // A call has a source for each of its entries (service authorization reference, EventBridge: events:source is an
        // ArrayOfString), and "all values" is also true of none: a call must name its sources.
        'ForAllValues:StringEquals': {
          'events:source': Lazy.list({
            produce: () => (sources().length > 0 ? [...sources()] : [NO_SOURCE]),
          }),
        },
        Null: { 'events:source': 'false' },
      },
    });
  }
}

/** A bus must have a name, and the one that the CDK would give is the same in every stage of an account. */
function busName(scope: Construct, id: string): string {
  return `${Names.uniqueResourceName(scope, { maxLength: 200, separator: '-', allowedSpecialCharacters: '-' })}-${id}`;
}
