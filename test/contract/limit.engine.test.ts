import { inject } from 'vitest';
import { engineTable } from './engine-table.ts';
import { describeLimits } from './limit-contract.ts';

describeLimits('limits on DynamoDB', async () => {
  const { table, remove } = await engineTable(inject('endpoint'), []);
  return { subject: table, remove };
});
