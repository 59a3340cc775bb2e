import type { VerifyCheck } from './check.ts';
import { denialChecks } from './denials.ts';
import { mappingCheck } from './mapping-off.ts';
import { ordersCheck, unsignedCheck } from './orders.ts';
import { poisonCheck } from './poison.ts';
import { moveTaskCheck, redriveCheck } from './redrive.ts';
import { ruleCheck } from './rule-off.ts';
import { statusCheck } from './statuses.ts';

/**
 * The checks in their order: the probes repeat an order of the demo, and the status comes after every fault.
 *
 * @param orders - of the demo
 */
export function checksOf(orders: number): readonly VerifyCheck[] {
  return [
    ordersCheck(orders),
    unsignedCheck,
    ...denialChecks,
    redriveCheck,
    moveTaskCheck,
    mappingCheck,
    ruleCheck,
    poisonCheck,
    statusCheck,
  ];
}
