import type { TestProject } from 'vitest/node';
import { type Engine, startEngine } from '../../localstack/engine.ts';
import { freePort } from '../../localstack/free-port.ts';
import { type DebianPrograms, debianPrograms, whyNoDebian } from './servers/debian-packages.ts';
import { kafkaJars, whyNoKafka } from './servers/kafka-jars.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The programs of NATS and RabbitMQ, unless their tests are skipped. */
    debian: DebianPrograms | undefined;
    /** The class path of Kafka, unless its tests are skipped. */
    kafka: string | undefined;
  }
}

let engine: Engine | undefined;

/**
 * Before the tests: downloads the brokers, only the first time. Prints why those of a broker are skipped.
 *
 * @throws Error if one is missing although `BROKERS` is `required`, as in the nightly workflow
 */
export async function setup({ provide }: TestProject): Promise<void> {
  const [noDebian, noKafka] = await Promise.all([whyNoDebian(), whyNoKafka()]);
  const missing = [
    ...(noDebian ? [`NATS and RabbitMQ: ${noDebian}`] : []),
    ...(noKafka ? [`Kafka: ${noKafka}`] : []),
  ];
  if (missing.length > 0 && process.env.BROKERS === 'required') throw new Error(missing.join('\n'));
  for (const reason of missing) console.error(`[brokers] Skips the tests of ${reason}.`);
  const [debian, kafka, started] = await Promise.all([
    noDebian ? undefined : debianPrograms(),
    noKafka ? undefined : kafkaJars(),
    startEngine({ env: {}, port: await freePort() }),
  ]);
  engine = started;
  provide('endpoint', engine.endpoint);
  provide('debian', debian);
  provide('kafka', kafka);
}

/** After the tests: stops the local AWS. */
export async function teardown(): Promise<void> {
  await engine?.stop();
}
