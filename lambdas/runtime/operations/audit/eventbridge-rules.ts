import {
  DescribeRuleCommand,
  type EventBridgeClient,
  ListTargetsByRuleCommand,
  type Target,
} from '@aws-sdk/client-eventbridge';
import { errorCode } from '../../base/errors.ts';
import { type DeployedRules, type DeployedTarget, TARGET_INPUTS } from './audit-drift.ts';

/** Reads a rule without its targets. @throws ResourceNotFoundException if the bus has no such rule */
export type ReadRule = (
  bus: string,
  rule: string,
) => Promise<{ readonly State?: string | undefined; readonly EventPattern?: string | undefined }>;

/**
 * The rules port on EventBridge.
 *
 * @param read - reads a rule @default with its own request
 *
 * @example
 * ```ts
 * const rules = eventBridgeRules(new EventBridgeClient(clientSettings));
 * ```
 */
export function eventBridgeRules(
  client: EventBridgeClient,
  read: ReadRule = (EventBusName, Name) => client.send(new DescribeRuleCommand({ EventBusName, Name })),
): DeployedRules {
  return {
    describe: async (bus, rule) => {
      try {
        const [{ State, EventPattern = '' }, { Targets = [] }] = await Promise.all([
          read(bus, rule),
          // A rule has at most five targets, so one page is enough.
          client.send(new ListTargetsByRuleCommand({ EventBusName: bus, Rule: rule })),
        ]);
        return {
          enabled: State !== 'DISABLED',
          pattern: EventPattern,
          targets: Targets.map(targetOf),
        };
      } catch (error) {
        if (errorCode(error) === 'ResourceNotFoundException') return undefined;
        throw error;
      }
    },
  };
}

/** The path of the whole event, which changes nothing. */
const WHOLE = '$';

function targetOf(target: Target): DeployedTarget {
  const { Id = '', Arn = '', Input: _input, InputPath, InputTransformer: _transformer, ...settings } = target;
  const changing = { ...target, InputPath: InputPath === WHOLE ? undefined : InputPath };
  return {
    id: Id,
    arn: Arn,
    deadLetterQueue: target.DeadLetterConfig?.Arn,
    input: TARGET_INPUTS.find((member) => changing[member] !== undefined),
    settings,
  };
}
