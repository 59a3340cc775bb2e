import { rename, rm } from 'node:fs/promises';
import type { TestProject } from 'vitest/node';
import type { Outputs } from '../../localstack/cdk-process.ts';
import { deployLocal } from '../../localstack/deploy.ts';
import { type Engine, startEngine } from '../../localstack/engine.ts';
import { freePort } from '../../localstack/free-port.ts';
import { localEnvironment, localFile } from '../../localstack/workspace.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the local AWS of this test run answers. */
    endpoint: string;
    /** The outputs of all stacks, by name. */
    outputs: Outputs;
  }
}

let engine: Engine | undefined;

/**
 * Before the local tests: starts an engine of their own on a free port (or takes the one that `AWS_ENDPOINT_URL`
 * names), deploys the app to it, and tells the tests where it is. What fails here fails the run.
 */
export async function setup(project: TestProject): Promise<void> {
  const say = (line: string): void => console.error(`[local] ${line}`);
  const { AWS_ENDPOINT_URL } = process.env;
  const where = AWS_ENDPOINT_URL ? { env: { AWS_ENDPOINT_URL } } : { port: await freePort() };
  engine = await startEngine({ ...where, onProgress: say });
  try {
    // The workers inherit it: an SDK client made without settings reaches this engine.
    Object.assign(process.env, localEnvironment(engine.endpoint));
    project.provide('endpoint', engine.endpoint);
    project.provide('outputs', await deployLocal({ endpoint: engine.endpoint, onProgress: say }));
  } catch (error) {
    await engine.stop();
    throw error;
  }
}

/** After the local tests: ends the engine, if it was started for them, and keeps its log under one name. */
export async function teardown(): Promise<void> {
  await engine?.stop();
  if (!engine?.logFile) return;
  await rename(engine.logFile, localFile('engine-of-tests.log'));
  await rm(localFile(`outputs-${engine.port}.json`), { force: true });
}
