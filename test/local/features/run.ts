import type { ForeignEvent, Write } from '../../../lambdas/runtime/index.ts';

/** Counts a run of an event in a row of its own. */
export function runOf({ foreignId, occurredAt }: ForeignEvent): Write {
  return {
    Update: {
      Key: { PK: `RUNS#${foreignId}`, SK: 'RUNS' },
      UpdateExpression: 'ADD runs :one SET occurredAt = :at',
      ExpressionAttributeValues: { ':one': 1, ':at': occurredAt },
    },
  };
}
