import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Extractor, ExtractorConfig, ExtractorLogLevel, type IConfigFile } from '@microsoft/api-extractor';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** The entries of the package, by the names of their reports and pages: their declarations, what is imported, what it is for. */
export const ENTRIES = {
  constructs: {
    types: 'lib/index.d.ts',
    specifier: 'cdk-mailroom',
    purpose: 'The constructs, for CDK apps.',
  },
  runtime: {
    types: 'lambdas/runtime/index.d.ts',
    specifier: 'cdk-mailroom/runtime',
    purpose: 'The library that Lambda functions import.',
  },
  http: {
    types: 'lambdas/runtime/http.d.ts',
    specifier: 'cdk-mailroom/http',
    purpose: 'HTTP requests that can be sent again, for Lambda functions and services.',
  },
  bridge: {
    types: 'lambdas/runtime/bridge.d.ts',
    specifier: 'cdk-mailroom/bridge',
    purpose: 'Bridges: consumers that send their events to a queue, topic or stream of another system.',
  },
  sources: {
    types: 'lambdas/runtime/sources.d.ts',
    specifier: 'cdk-mailroom/sources',
    purpose:
      'Consumers of Kafka, Kinesis, JetStream, RabbitMQ and other sources, in Lambda functions and in processes.',
  },
  postgres: {
    types: 'lambdas/runtime/postgres.d.ts',
    specifier: 'cdk-mailroom/postgres',
    purpose: 'The outbox and the inbox of services that keep their data in PostgreSQL.',
  },
  mysql: {
    types: 'lambdas/runtime/mysql.d.ts',
    specifier: 'cdk-mailroom/mysql',
    purpose: 'The outbox and the inbox of services that keep their data in MySQL or MariaDB.',
  },
  testing: {
    types: 'testing/index.d.ts',
    specifier: 'cdk-mailroom/testing',
    purpose: 'In-memory doubles and the explorer, for tests.',
  },
  internals: {
    types: 'lambdas/runtime/internals.d.ts',
    specifier: 'cdk-mailroom/internals',
    purpose: 'Parts for tools that read or write the table. They can change in a minor version.',
  },
} as const;

/** The public surface of one entry of the package. */
export interface ApiReport {
  /** Every exported declaration, as its users see it. */
  readonly text: string;
  /** The problems of the surface, such as a type that can be met but not named. */
  readonly problems: readonly string[];
}

/**
 * Reads the public surface of one entry.
 *
 * @param types - the entry's declarations, built
 * @param folder - takes what API Extractor writes: the report, and the model in `model.api.json`
 */
export async function apiReport(types: string, folder: string): Promise<ApiReport> {
  const problems: string[] = [];
  const none = { logLevel: ExtractorLogLevel.None };
  const warning = { logLevel: ExtractorLogLevel.Warning };
  const configObject: IConfigFile = {
    projectFolder: ROOT,
    newlineKind: 'lf',
    mainEntryPointFilePath: types,
    compiler: {
      overrideTsconfig: {
        compilerOptions: {
          target: 'ES2023',
          module: 'NodeNext',
          moduleResolution: 'NodeNext',
          // AbortSignal is a name of the platform: of Node.js through the DOM's declarations, or its own.
          lib: ['ES2023', 'DOM'],
          types: ['node'],
          strict: true,
          skipLibCheck: true,
        },
        files: [types],
      },
    },
    apiReport: {
      enabled: true,
      reportFileName: 'report',
      reportFolder: folder,
      reportTempFolder: folder,
      includeForgottenExports: false,
    },
    docModel: { enabled: true, apiJsonFilePath: join(folder, 'model.api.json') },
    dtsRollup: { enabled: false },
    tsdocMetadata: { enabled: false },
    messages: {
      compilerMessageReporting: { default: warning },
      extractorMessageReporting: {
        default: warning,
        // Everything that is exported is public: no release tags.
        'ae-missing-release-tag': none,
        // A member whose name says it all needs no words, and a link may lead into the source.
        'ae-undocumented': none,
        'ae-unresolved-link': none,
      },
      // The comments are read by editors, which know @default; TSDoc's own grammar does not.
      tsdocMessageReporting: { default: none },
    },
  };
  Extractor.invoke(
    ExtractorConfig.prepare({
      configObject,
      configObjectFullPath: undefined,
      packageJsonFullPath: join(ROOT, 'package.json'),
    }),
    {
      localBuild: true,
      messageCallback: (message) => {
        message.handled = true;
        if (message.logLevel === 'warning' || message.logLevel === 'error') {
          if (!message.messageId.startsWith('console-'))
            problems.push(`${message.messageId}: ${message.text}`);
        }
      },
    },
  );
  return { text: await readFile(join(folder, 'report.api.md'), 'utf8'), problems };
}
