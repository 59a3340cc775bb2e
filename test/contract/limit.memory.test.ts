import { memoryTable } from '../../testing/index.ts';
import { describeLimits } from './limit-contract.ts';

describeLimits('limits on the table in memory', async () => ({
  subject: memoryTable(),
  remove: async () => undefined,
}));
