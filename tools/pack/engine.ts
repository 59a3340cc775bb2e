// Copies into the package of the command the files with which `mailroom local` starts an engine: docs/adr/0055.
import { copyFile, mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const FROM = new URL('../../localstack/', import.meta.url);
const TO = new URL('../../cli/dist/localstack/', import.meta.url);

await mkdir(TO, { recursive: true });
for (const name of ['compose.yml', 'engine.py', 'requirements.txt'])
  await copyFile(fileURLToPath(new URL(name, FROM)), fileURLToPath(new URL(name, TO)));
