import { inject } from 'vitest';
import { engineTable } from './engine-table.ts';
import { describePlaces } from './place-contract.ts';

describePlaces('places of limits on DynamoDB', async () => {
  const { table, remove } = await engineTable(inject('endpoint'), []);
  return { subject: table, remove };
});
