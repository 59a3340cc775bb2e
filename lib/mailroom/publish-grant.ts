import { Lazy } from 'aws-cdk-lib';
import type { IEventBus } from 'aws-cdk-lib/aws-events';
import type { Grant, IGrantable } from 'aws-cdk-lib/aws-iam';
import { grantTo } from '../checks/granted.ts';

/** Not a valid service name. IAM would drop an empty list, and the condition with it. */
export const NO_SOURCE = '(none)';

/**
 * The conditions of a call that puts events of these sources only. A call has one source per entry (service authorization reference,
 * EventBridge: events:source is an ArrayOfString). "All values" is also true of an empty list, so the Null condition requires at least one
 * source.
 *
 * @param sources - called at synth, when every producer is known
 */
export function onlySources(sources: () => readonly string[]): Record<string, Record<string, unknown>> {
  return {
    'ForAllValues:StringEquals': {
      'events:source': Lazy.list({
        produce: () => (sources().length > 0 ? [...sources()] : [NO_SOURCE]),
      }),
    },
    Null: { 'events:source': 'false' },
  };
}

/** Lets a principal put events of these sources on a bus, and on no other. @param sources - called at synth */
export function allowPublish(bus: IEventBus, grantee: IGrantable, sources: () => readonly string[]): Grant {
  return grantTo(bus, {
    grantee,
    actions: ['events:PutEvents'],
    resourceArns: [bus.eventBusArn],
    conditions: onlySources(sources),
  });
}
