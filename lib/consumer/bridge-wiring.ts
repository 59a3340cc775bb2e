import { Annotations } from 'aws-cdk-lib';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { IConstruct } from 'constructs';
import { BRIDGE_TO } from '../../lambdas/runtime/base/bridge-address.ts';
import { unless } from '../checks/refusal.ts';
import type { BridgeDestination } from './bridge-destination.ts';
import type { InboxConsumerProps } from './inbox-consumer-props.ts';

/** Validates the target of a bridge. */
export function bridgeProblems({ forwardsTo, function: own }: InboxConsumerProps): string[] {
  if (forwardsTo?.cluster === undefined) return [];
  return [
    ...unless(forwardsTo.port !== undefined, 'forwardsTo has a cluster but no port. Set port, e.g. to 9098.'),
    ...unless(
      own?.existing !== undefined || own?.vpc !== undefined,
      'forwardsTo has a cluster, but function has no vpc, so the function cannot reach it. Set function.vpc to its VPC.',
    ),
  ];
}

/** Lets the function of a bridge send to its target, and gives it the address. */
export function bindBridge(handler: LambdaFunction, target: BridgeDestination | undefined): void {
  if (target === undefined) return;
  handler.addEnvironment(BRIDGE_TO, target.address);
  target.grant(handler);
}

/** Warns of a FIFO target that cannot show an order. */
export function warnOfUnorderedBridge(
  consumer: IConstruct,
  { forwardsTo, order }: Pick<InboxConsumerProps, 'forwardsTo' | 'order'>,
): void {
  if (forwardsTo?.fifo !== true || order?.mode === 'strict') return;
  Annotations.of(consumer).addWarningV2(
    'cdk-mailroom:unorderedBridge',
    `forwardsTo is a FIFO target of ${forwardsTo.kind}, but without order: strict() the events of an aggregate reach it in any order. Set the order, or acknowledge this warning.`,
  );
}
