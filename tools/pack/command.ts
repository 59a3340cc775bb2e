// Completes what tsc wrote for the package of the command: docs/adr/0056.
import { copyFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { mailroomCommand } from '../../cli/program.ts';
import { EXIT, type Io } from '../../cli/terminal/io.ts';
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

/** The help of a command and its subcommands, by their words: `dlq redrive`. */
function helpTexts(command: Command, io: Io, words = ''): [string, string][] {
  const written: string[] = [];
  io.out = (text) => written.push(text);
  command.outputHelp();
  const below = command.commands.flatMap((child) => helpTexts(child, io, `${words} ${child.name()}`.trim()));
  return [[words, written.join('')], ...below];
}

const io: Io = {
  env: {},
  outIsTerminal: false,
  errIsTerminal: false,
  outSize: () => undefined,
  out: () => undefined,
  err: () => undefined,
  signal: new AbortController().signal,
  exitCode: EXIT.ok,
};
// For a command whose packages are not installed: cli/bin/missing-packages.js.
const help = Object.fromEntries(helpTexts(await mailroomCommand(io, false), io));
await writeFile(join(DIST, 'help.json'), JSON.stringify(help));
