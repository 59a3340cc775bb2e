import {
  DescribeRuleCommand,
  type EventBridgeClient,
  ListTargetsByRuleCommand,
} from '@aws-sdk/client-eventbridge';
import { errorCode } from '../../base/errors.ts';
import type { DeployedRules } from './audit-drift.ts';

/**
 * The rules port on EventBridge.
 *
 * @example
 * ```ts
 * const rules = eventBridgeRules(new EventBridgeClient(clientSettings));
 * ```
 */
export function eventBridgeRules(client: EventBridgeClient): DeployedRules {
  return {
    describe: async (bus, rule) => {
      try {
        const { State, EventPattern = '' } = await client.send(
          new DescribeRuleCommand({ EventBusName: bus, Name: rule }),
        );
        // A rule has at most five targets, so one page is enough.
        const { Targets = [] } = await client.send(
          new ListTargetsByRuleCommand({ EventBusName: bus, Rule: rule }),
        );
        return {
          enabled: State !== 'DISABLED',
          pattern: EventPattern,
          targets: Targets.map(({ Id = '', Arn = '', DeadLetterConfig }) => ({
            id: Id,
            arn: Arn,
            deadLetterQueue: DeadLetterConfig?.Arn,
          })),
        };
      } catch (error) {
        if (errorCode(error) === 'ResourceNotFoundException') return undefined;
        throw error;
      }
    },
  };
}
