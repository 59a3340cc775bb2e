import type { ExternalEvent, Write } from '../../../lambdas/runtime/index.ts';

/** Counts a run of an event in its own row. */
export function runOf({ externalId, occurredAt }: ExternalEvent): Write {
  return {
    Update: {
      Key: { PK: `RUNS#${externalId}`, SK: 'RUNS' },
      UpdateExpression: 'ADD runs :one SET occurredAt = :at',
      ExpressionAttributeValues: { ':one': 1, ':at': occurredAt },
    },
  };
}
