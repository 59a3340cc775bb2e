import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { EXIT } from '../../cli/terminal/io.ts';
import {
  atOnceSettings,
  auditSettings,
  heartbeatSettings,
  producerSettings,
  relaySettings,
} from '../../lambdas/runtime/base/config.ts';
import { consumerSettings } from '../../lambdas/runtime/base/consumer-config.ts';
import { mysqlRelaySettings } from '../../lambdas/runtime/mysql/mysql-settings.ts';
import {
  postgresProducerSettings,
  postgresRelaySettings,
} from '../../lambdas/runtime/postgres/postgres-settings.ts';
import { consumerConfig, relayConfig } from '../support/runtime-rig.ts';

/** Names of DynamoDB, and states of rows, that are written as error codes are. */
const NO_CODES = /^(?:ALL_OLD|ALL_NEW|IN_PROGRESS|(?:AWS|KAFKA|MAILROOM|MYSQL|POWERTOOLS)_\w+)$/;

/** The text of every TypeScript file below some folders, but for what only serves tests or runs in the browser. */
function sources(...folders: readonly string[]): string {
  const files = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`),
  );
  const ours = files.filter(
    (file) => file.endsWith('.ts') && !/\/(?:testing|example|page\/client)\//.test(file),
  );
  return ours
    .sort()
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n');
}

function sorted(names: Iterable<string>): string[] {
  return [...new Set(names)].sort();
}

/** Codes are literals: the first argument of an error, or a name of two words or more that is handed to one. */
function errorCodes(text: string): string[] {
  const thrown = /(?:Error|Message|super)\(\s*'(?<code>[A-Z][A-Z_]+)'/g;
  const named = /'(?<code>[A-Z]+(?:_[A-Z]+)+)'/g;
  const found = [...text.matchAll(thrown), ...text.matchAll(named)].map(({ groups }) => groups?.code ?? '');
  return sorted(found.filter((code) => !NO_CODES.test(code)));
}

/** Each metric with what it is: a counter, a gauge, a duration in milliseconds. */
function metrics(text: string): string[] {
  const emitted = /\.(?<kind>count|gauge|duration)\(\s*'(?<name>\w+)'/g;
  return sorted([...text.matchAll(emitted)].map(({ groups }) => `${groups?.name} ${groups?.kind}`));
}

test('names that others rely on are those that were reviewed', async () => {
  const runtime = sources('lambdas/runtime');
  const environments = {
    producer: producerSettings.encode({ ...consumerConfig, publishes: [] }),
    'producer that publishes at once, besides': atOnceSettings.encode({
      busName: 'bus',
      timeoutMs: 1_000,
      publishedRetentionDays: 7,
    }),
    consumer: consumerSettings.encode({
      ...consumerConfig,
      publishes: [],
      inboxSince: 0,
      existingQueue: true,
    }),
    relay: relaySettings.encode({ ...relayConfig, sources: [] }),
    'producer, with PostgreSQL': postgresProducerSettings.encode({
      service: 's',
      tableName: 'm',
      publishes: [],
    }),
    'relay, with PostgreSQL': postgresRelaySettings.encode({
      ...relayConfig,
      sources: [],
      pollMs: 200,
    }),
    'relay, with MySQL': mysqlRelaySettings.encode({
      ...relayConfig,
      sources: [],
      pollMs: 200,
      claim: 'token',
    }),
    audit: auditSettings.encode({ tableName: 'Mailroom', sinceMs: 60_000, everyMs: 60_000 }),
    heartbeat: heartbeatSettings.encode({ ...consumerConfig, publishes: [], everyMs: 300_000 }),
  };
  const parts: Readonly<Record<string, readonly string[]>> = {
    'Metrics, in the namespace Mailroom': metrics(runtime),
    ...Object.fromEntries(
      Object.entries(environments).map(([part, environment]) => [
        `Environment of a function: ${part}`,
        sorted(Object.keys(environment)),
      ]),
    ),
    'Error codes of the runtime': errorCodes(runtime),
    'Error codes of the constructs': errorCodes(sources('lib')),
    'Error codes of the mailroom command': errorCodes(sources('cli')),
    'Exit codes of the mailroom command': Object.entries(EXIT).map(([name, code]) => `${code} ${name}`),
  };
  const text = Object.entries(parts).map(
    ([title, names]) => `${title}:\n${names.map((name) => `  ${name}\n`).join('')}`,
  );
  await expect(
    text.join('\n'),
    'A name that others rely on has changed. See docs/versioning.md for what that makes of the next version, and renew the ' +
      'reviewed text with: npx vitest run --project fast test/unit/public-surface.test.ts -u',
  ).toMatchFileSnapshot('public-surface.txt');
});

test('every metric that may be named is emitted, and no other', () => {
  const declared = /type MetricName =(?<names>[^;]+);/.exec(
    readFileSync('lambdas/runtime/observe/telemetry.ts', 'utf8'),
  );
  const names = [...(declared?.groups?.names ?? '').matchAll(/'(\w+)'/g)].map(([, name = '']) => name);
  const emitted = metrics(sources('lambdas/runtime')).map((line) => line.split(' ')[0]);
  expect(emitted).toEqual(sorted(names));
});
