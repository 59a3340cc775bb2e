import { memoryTable } from '../../testing/index.ts';
import { describeTable } from './table-contract.ts';

describeTable('the table in memory', async () => ({ subject: memoryTable(), remove: async () => undefined }));
