import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The part of a cloud assembly's manifest that is read. */
interface Manifest {
  readonly artifacts?: Readonly<Record<string, Artifact>>;
}

interface Artifact {
  readonly type?: string;
  readonly properties?: { readonly stackName?: string; readonly directoryName?: string };
}

/**
 * Reads the names of the stacks that the CDK app of a folder last synthesized, those of its stages included.
 *
 * @returns none if the folder has no synthesized app
 */
export async function appStacks(folder: string): Promise<string[]> {
  const { output = 'cdk.out' } = await readJson<{ readonly output?: string }>(join(folder, 'cdk.json'));
  return await stacksIn(join(folder, output));
}

async function stacksIn(assembly: string): Promise<string[]> {
  const { artifacts = {} } = await readJson<Manifest>(join(assembly, 'manifest.json'));
  const names = await Promise.all(
    Object.entries(artifacts).map(async ([id, { type, properties = {} }]) => {
      if (type === 'aws:cloudformation:stack') return [properties.stackName ?? id];
      if (type !== 'cdk:cloud-assembly' || properties.directoryName === undefined) return [];
      return await stacksIn(join(assembly, properties.directoryName));
    }),
  );
  return names.flat();
}

/** Reads the object in a file; empty if the file has none. */
async function readJson<Content extends object>(file: string): Promise<Partial<Content>> {
  try {
    return Object(JSON.parse(await readFile(file, 'utf8')));
  } catch {
    return {};
  }
}
