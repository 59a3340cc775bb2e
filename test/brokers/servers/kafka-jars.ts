import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
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

/** Downloads the jars of Kafka. @returns the class path */
export function kafkaJars(): Promise<string> {
  return mavenJars('kafka', pom);
}

/**
 * Downloads the jars of a pom.xml.
 *
 * @param checksums - the file with the SHA-256 of each jar @default they are not compared
 * @returns the class path
 * @throws Error if Maven cannot download them, with its output, or a jar has another checksum
 */
export async function mavenJars(name: string, from: string, checksums?: string): Promise<string> {
  const pinned = checksums === undefined ? '' : await readFile(checksums, 'utf8');
  const dir = await filledOnce(name, (await readFile(from, 'utf8')) + pinned, async (to) => {
    const goal = ['dependency:copy-dependencies', '-DincludeScope=runtime', `-DoutputDirectory=${to}`];
    await run('mvn', ['-q', '-B', '-f', from, ...goal]).catch((cause) => {
      throw new Error(`Maven could not download ${name}:\n${cause.stdout}`, { cause });
    });
    if (checksums !== undefined) await compareAll(to, pinned);
  });
  return `${dir}/*`;
}

/** @throws Error, naming the first jar that is absent, unlisted, or another one than listed */
async function compareAll(dir: string, pinned: string): Promise<void> {
  const listed = new Map(
    pinned
      .trimEnd()
      .split('\n')
      .map((line) => line.split('  ').toReversed() as [string, string]),
  );
  const found = await readdir(dir);
  const odd = [...listed.keys()].find((jar) => !found.includes(jar));
  if (odd !== undefined) throw new Error(`Maven did not download ${odd}.`);
  for (const jar of found) {
    const hash = createHash('sha256').update(await readFile(join(dir, jar)));
    if (hash.digest('hex') !== listed.get(jar))
      throw new Error(`${jar} is not the file of the listed checksum.`);
  }
}
