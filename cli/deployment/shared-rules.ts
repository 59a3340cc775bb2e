import { DescribeRuleCommand, type EventBridgeClient, ListRulesCommand } from '@aws-sdk/client-eventbridge';
import type { ReadRule } from '../../lambdas/runtime/operations/audit/eventbridge-rules.ts';
import { orMissing } from './aws-reads.ts';
import { isDenied, isUnsupported } from './refusals.ts';

/** The bus of the account, whose rules are those of every application. */
const ACCOUNT_BUS = 'default';

/**
 * Concurrent reads of the rules of a bus share one list of them. Where the bus has more than a page of rules or they may not be listed, and
 * for a rule that the list does not have, it is read alone.
 */
export function sharedRules(client: EventBridgeClient): ReadRule {
  const listings = new Map<string, ReturnType<typeof list>>();
  async function list(EventBusName: string) {
    try {
      const found = await orMissing(() => client.send(new ListRulesCommand({ EventBusName })));
      return found === undefined || found.NextToken ? [] : (found.Rules ?? []);
    } catch (error) {
      if (isDenied(error) || isUnsupported(error)) return [];
      throw error;
    }
  }
  function listed(bus: string) {
    const running = listings.get(bus) ?? list(bus).finally(() => listings.delete(bus));
    listings.set(bus, running);
    return running;
  }
  return async (bus, rule) => {
    const rules = bus === ACCOUNT_BUS ? [] : await listed(bus);
    const found = rules.find(({ Name }) => Name === rule);
    return found ?? client.send(new DescribeRuleCommand({ EventBusName: bus, Name: rule }));
  };
}
