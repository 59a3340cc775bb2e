import { afterAll, beforeAll } from 'vitest';
import { inboxContract } from './inbox-contract.ts';
import { dynamoTested, migratedPostgres, postgresTested } from './inbox-rig.ts';

let postgres: Awaited<ReturnType<typeof migratedPostgres>>;

beforeAll(async () => {
  postgres = await migratedPostgres('inbox');
});

afterAll(() => postgres.close());

inboxContract('DynamoDB', dynamoTested);

inboxContract('PostgreSQL', () => postgresTested(postgres.database));
