import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { DAY_MS } from '../../lambdas/runtime/base/units.ts';
import { isAlive } from '../../localstack/process-group.ts';
import { removeLeftovers } from '../brokers/servers/broker-files.ts';

/*
 * Imported by every configuration of Vitest. The run, its workers and the programs that they start get one folder for temporary files, which
 * is removed when the run ends, with the data of servers that it has left. What a killed run has left is removed by a later one.
 */

/** The name of a run's folder, with the id of its process. */
const RUN = /^mailroom-tests-(\d+)-/;

/** A container can share the folder, but not the ids of processes: what is younger than a day can belong to it. */
function removeEnded(folder: string): void {
  for (const name of readdirSync(folder)) {
    const [, pid] = RUN.exec(name) ?? [];
    if (pid === undefined || isAlive(Number(pid))) continue;
    const path = join(folder, name);
    try {
      if (statSync(path).mtimeMs < Date.now() - DAY_MS) rmSync(path, { recursive: true, force: true });
    } catch {
      // It belongs to another user, or another run has removed it.
    }
  }
}

// A project reads the configuration again, and a test may start a run of its own.
if (!RUN.test(basename(tmpdir()))) {
  removeEnded(tmpdir());
  removeLeftovers();
  const folder = mkdtempSync(join(tmpdir(), `mailroom-tests-${process.pid}-`));
  process.env.TMPDIR = folder;
  process.once('exit', () => {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
    removeLeftovers();
  });
}
