import { describe } from 'vitest';
import type { ClaimMode } from '../../lambdas/runtime/store/mysql/server-check.ts';
import { aggregateOrderContract } from '../contract/aggregate-order-contract.ts';
import { queueRigOf } from './support/queue-rig.ts';
import { startRig } from './support/rig.ts';

describe.each<ClaimMode>(['skip-locked', 'token'])('MariaDB, %s', (claim) => {
  aggregateOrderContract(async () => queueRigOf(await startRig(`mysql-aggregate-order-${claim}`), claim));
});
