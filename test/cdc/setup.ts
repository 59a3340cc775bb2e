import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { kafkaJars, mavenJars, whyNoKafka } from '../brokers/servers/kafka-jars.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The class path of Kafka Connect and Debezium. */
    connect: string;
    /** The same, with Debezium for MariaDB. */
    connectMariadb: string;
  }
}

const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** Downloads the servers, only the first time. @throws Error if they cannot run here */
export async function setup({ provide }: TestProject): Promise<void> {
  const missing = await whyNoKafka();
  if (missing !== undefined) throw new Error(`Kafka Connect does not run here: ${missing}.`);
  provide('kafka', await kafkaJars());
  const mariadb = ['mariadb/pom.xml', 'mariadb/jars.sha256'].map(file) as [string, string];
  provide('connectMariadb', await mavenJars('connect-mariadb', ...mariadb));
  provide('connect', await mavenJars('connect', file('pom.xml'), file('jars.sha256')));
}
