import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { filledOnce } from './broker-files.ts';

const run = promisify(execFile);

/** The oldest Java that Kafka 3.9 is tested with here. */
const JAVA_MIN = 17;

const pom = fileURLToPath(new URL('pom.xml', import.meta.url));

/** The reason why Kafka does not run here, or undefined. */
export async function whyNoKafka(): Promise<string | undefined> {
  const java = await run('java', ['-version']).catch(() => undefined);
  const [, major] = /version "(\d+)/.exec(java?.stderr ?? '') ?? [];
  if (major === undefined) return `Java was not found: install ${JAVA_MIN} or later`;
  if (Number(major) < JAVA_MIN) return `this is Java ${major}: install ${JAVA_MIN} or later`;
  const maven = await run('mvn', ['--version']).catch(() => undefined);
  return maven ? undefined : 'there is no Maven (mvn)';
}

/**
 * Downloads the jars of pom.xml.
 *
 * @returns the class path
 * @throws Error if Maven cannot download them, with its output
 */
export async function kafkaJars(): Promise<string> {
  const dir = await filledOnce('kafka', await readFile(pom, 'utf8'), async (to) => {
    const goal = ['dependency:copy-dependencies', '-DincludeScope=runtime', `-DoutputDirectory=${to}`];
    await run('mvn', ['-q', '-B', '-f', pom, ...goal]).catch((cause) => {
      throw new Error(`Maven could not download Kafka:\n${cause.stdout}`, { cause });
    });
  });
  return `${dir}/*`;
}
