import { describe } from 'vitest';
import { queueContract } from '../contract/database-queue-contract.ts';
import { queueRigOf } from './support/queue-rig.ts';
import { startRig } from './support/rig.ts';

describe('PostgreSQL', () => queueContract(async () => queueRigOf(await startRig('postgres-queue'))));
