import { inject } from 'vitest';
import { describeBatches } from './batch-contract.ts';
import { engineTable } from './engine-table.ts';

describeBatches('batches on DynamoDB', async () => {
  const { table, remove } = await engineTable(inject('endpoint'), []);
  return { subject: table, remove };
});
