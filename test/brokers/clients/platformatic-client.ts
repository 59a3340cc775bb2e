import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type { KafkaClient, KafkaProduced } from '../../../lambdas/runtime/bridge.ts';
import { filledOnce } from '../servers/broker-files.ts';

const run = promisify(execFile);

const PACKAGE = '@platformatic/kafka@2.12.1';

/** The reason why `@platformatic/kafka` does not run here, or undefined. */
export function whyNoPlatformatic(version = process.versions.node): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const runs = major > 24 || (major === 24 && minor >= 6) || (major === 22 && minor >= 22);
  return runs ? undefined : `this is Node.js ${version}: ${PACKAGE} needs 22.22, or 24.6`;
}

/** The part of a producer of `@platformatic/kafka` that the adapter uses. */
interface Producer {
  metadata(of: { topics: string[]; autocreateTopics: boolean }): Promise<{
    readonly topics: ReadonlyMap<string, { readonly partitions: readonly { readonly leader: number }[] }>;
  }>;
  send(of: {
    messages: (KafkaProduced & { readonly topic: string; readonly partition: number })[];
  }): Promise<{
    readonly offsets?: readonly { readonly partition: number; readonly offset: bigint }[];
  }>;
  close(): Promise<void>;
}

interface Library {
  readonly Producer: new (options: object) => Producer;
  readonly stringSerializers: object;
}

/** Downloads the package, the first time. This project does not depend on it, because it runs on older Node.js. */
export async function platformaticLibrary(): Promise<Library> {
  const dir = await filledOnce('platformatic-kafka', PACKAGE, async (to) => {
    await run('npm', ['install', '--prefix', to, '--no-audit', '--no-fund', '--ignore-scripts', PACKAGE]);
  });
  return await import(pathToFileURL(join(dir, 'node_modules/@platformatic/kafka/dist/index.js')).href);
}

/** Adapts `@platformatic/kafka` to the port of `kafkaTarget`. */
export function platformaticClient(library: Library, brokers: string[]): KafkaClient {
  return {
    producer: ({ idempotent, maxInFlightRequests, retry, createPartitioner }) => {
      const place = createPartitioner();
      const producer = new library.Producer({
        clientId: 'mailroom',
        bootstrapBrokers: brokers,
        idempotent,
        acks: -1,
        maxInflights: maxInFlightRequests,
        retries: retry.retries,
        autocreateTopics: false,
        serializers: library.stringSerializers,
      });
      return {
        connect: async () => {},
        disconnect: () => producer.close(),
        send: async ({ topic, messages }) => {
          try {
            const metadata = await producer.metadata({ topics: [topic], autocreateTopics: false });
            const partitionMetadata = metadata.topics.get(topic)?.partitions ?? [];
            const placed = messages.map((message) => {
              return { ...message, topic, partition: place({ partitionMetadata, message }) };
            });
            const { offsets = [] } = await producer.send({ messages: placed });
            return offsets.map(({ partition, offset }) => ({ partition, baseOffset: String(offset) }));
          } catch (error) {
            throw Object.assign(new Error(String(error), { cause: error }), { type: typeOf(error) });
          }
        },
      };
    },
  };
}

interface Failure {
  readonly apiId?: unknown;
  readonly errors?: readonly unknown[];
  readonly cause?: unknown;
}

/** The type of Kafka's protocol in an error, in those that it gathers, or in its causes. */
function typeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { apiId, errors = [], cause } = error as Failure;
  if (typeof apiId === 'string') return apiId;
  return [...errors, cause].map(typeOf).find((type) => type !== undefined);
}
