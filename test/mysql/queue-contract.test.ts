import { describe } from 'vitest';
import { queueContract } from '../contract/database-queue-contract.ts';
import { queueRigOf } from './support/queue-rig.ts';
import { startRig } from './support/rig.ts';

describe('MariaDB', () => queueContract(async () => queueRigOf(await startRig('mysql-queue'))));

describe('MariaDB, by token', () =>
  queueContract(async () => queueRigOf(await startRig('mysql-token'), 'token')));
