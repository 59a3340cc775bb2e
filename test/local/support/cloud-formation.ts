import { expect, inject } from 'vitest';

/** One call of CloudFormation, which the project has no client of. A local engine checks no signature. */
export async function cloudFormation(
  parameters: Record<string, string>,
  endpoint = inject('endpoint'),
  region = 'us-east-1',
): Promise<string> {
  const answer = await fetch(endpoint, {
    method: 'POST',
    headers: {
      authorization: `AWS4-HMAC-SHA256 Credential=test/20260101/${region}/cloudformation/aws4_request, SignedHeaders=host, Signature=0`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: new URLSearchParams({ ...parameters, Version: '2010-05-15' }),
  });
  const text = await answer.text();
  expect(answer.status, text).toBe(200);
  return text;
}
