import { memoryTable } from '../../testing/index.ts';
import { describePlaces } from './place-contract.ts';

describePlaces('places of limits on the table in memory', async () => ({
  subject: memoryTable(),
  remove: async () => undefined,
}));
