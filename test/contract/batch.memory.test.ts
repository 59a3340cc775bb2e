import { memoryTable } from '../../testing/index.ts';
import { describeBatches } from './batch-contract.ts';

describeBatches('batches on the table in memory', async () => ({
  subject: memoryTable(),
  remove: async () => undefined,
}));
