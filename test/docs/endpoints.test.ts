import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

/** The endpoint of each client's service. DynamoDB has a gateway endpoint, which every function needs. */
const ENDPOINTS: Readonly<Record<string, string | undefined>> = {
  'client-cloudwatch': 'monitoring',
  'client-dynamodb': undefined,
  'client-eventbridge': 'events',
  'client-sqs': 'sqs',
  'client-ssm': 'ssm',
};

/** The interface endpoints that a handler of `lambdas/` needs: its clients are created there, and nowhere else. */
function needed(handler: string): string {
  const folder = new URL(`../../lambdas/${handler}/`, import.meta.url);
  const code = readdirSync(folder).map((file) => readFileSync(new URL(file, folder), 'utf8'));
  const clients = [...code.join('\n').matchAll(/@aws-sdk\/(client-\w+)/g)].map(([, client = '']) => client);
  expect(Object.keys(ENDPOINTS)).toEqual(expect.arrayContaining(clients));
  const endpoints = clients.flatMap((client) => ENDPOINTS[client] ?? []);
  return endpoints
    .sort()
    .map((name) => `\`${name}\``)
    .join(', ');
}

test('docs/deploying.md lists the endpoints that each function needs in a VPC', () => {
  const page = readFileSync(new URL('../../docs/deploying.md', import.meta.url), 'utf8');
  const [, shown = ''] = page.split(/<!-- \/?endpoints -->\n/);
  const rows = [...shown.matchAll(/^\| ([\w ]+) \| (`.*`) \|$/gm)].map(([, name, endpoints]) => [
    name,
    endpoints,
  ]);
  expect(Object.fromEntries(rows)).toEqual({
    'stream relay': needed('relay-stream'),
    sweep: needed('relay-sweep'),
    audit: needed('audit'),
    heartbeat: needed('heartbeat'),
  });
});
