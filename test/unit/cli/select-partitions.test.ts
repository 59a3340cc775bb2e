import { DynamoDBClient, ExecuteStatementCommand, type ExecuteStatementCommandOutput } from '@aws-sdk/client-dynamodb';
import { mockClient } from 'aws-sdk-client-mock';
import { expect, test } from 'vitest';
