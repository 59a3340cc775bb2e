// Completes what tsc wrote for the package of the command: docs/adr/0056.
import { copyFile, readdir, rm } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { reachedFiles } from './declarations.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const DIST = join(ROOT, 'cli', 'dist');

/** The files with which `mailroom local` starts an engine. */
const ENGINE = ['compose.yml', 'engine.py', 'requirements.txt'];

// tsc also writes the modules of which only types are imported.
const loaded = await reachedFiles(DIST, ['cli/main'], '.js');
for (const file of await readdir(DIST, { recursive: true }))
  if (file.endsWith('.js') && !loaded.includes(file.split(sep).join('/'))) await rm(join(DIST, file));
for (const name of ENGINE) await copyFile(join(ROOT, 'localstack', name), join(DIST, 'localstack', name));
