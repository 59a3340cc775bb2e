import { memoryTable } from '../../testing/index.ts';
import { describeUniqueEvents } from './unique-event-contract.ts';

describeUniqueEvents('unique events on the table in memory', async () => ({
  subject: memoryTable(),
  remove: async () => undefined,
}));
