import { setTimeout as sleep } from 'node:timers/promises';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { requiredEnv } from '../required-env.ts';
import { createBank } from './bank.ts';
import { dynamoLedger } from './ledger.ts';

const documents = DynamoDBDocumentClient.from(new DynamoDBClient({}));
const ledger = dynamoLedger({ documents, tableName: requiredEnv('BANK_TABLE') });
const bank = createBank({ ledger, now: () => Date.now(), sleep: (ms) => sleep(ms) });

/** The bank's only function, invoked with a charge or refund request. */
export const handler = (request: unknown) => bank(request);
