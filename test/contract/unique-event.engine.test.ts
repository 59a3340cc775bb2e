import { inject } from 'vitest';
import { engineTable } from './engine-table.ts';
import { describeUniqueEvents } from './unique-event-contract.ts';

describeUniqueEvents('unique events on DynamoDB', async () => {
  const { table, remove } = await engineTable(inject('endpoint'), []);
  return { subject: table, remove };
});
