import { readdir } from 'node:fs/promises';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import type { Io } from '../terminal/io.ts';

/** The options that every command takes. */
export interface GlobalOptions {
  readonly stage?: string;
  readonly stack?: string;
  readonly profile?: string;
  readonly region?: string;
  readonly endpoint?: string;
  /** The URL of the database that also has rows of the Mailroom. */
  readonly database?: string;
  readonly json?: boolean;
}

/** Configuration of the AWS SDK clients. */
export interface Target {
  readonly region?: string;
  readonly endpoint?: string;
  readonly profile?: string;
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
}

/** The stage on a local engine, its default endpoint and its only region. */
const LOCAL = { stage: 'local', endpoint: 'http://127.0.0.1:4566', region: 'us-east-1' };

/** A local engine accepts any keys. */
const LOCAL_CREDENTIALS = { accessKeyId: 'test', secretAccessKey: 'test' };

const LOOPBACK = /^https?:\/\/(127\.0\.0\.1|localhost|\[::1\])(:|\/|$)/;

/**
 * Chooses the endpoint: `--endpoint`, else `AWS_ENDPOINT_URL`, else AWS. The stage `local` is the local engine. So is a call
 * without any such option or variable, in a folder where `npm run demo -- --keep` or `npm run local` left one running.
 */
export async function targetOf(
  options: GlobalOptions,
  env: Io['env'],
): Promise<Target & { readonly isLocal: boolean }> {
  const { stage, region, profile } = options;
  const said = options.endpoint ?? env.AWS_ENDPOINT_URL;
  const nothingSaid = [stage, region, profile, env.AWS_PROFILE, env.AWS_ACCESS_KEY_ID].every(
    (value) => value === undefined,
  );
  const local =
    said === undefined && (stage === LOCAL.stage || nothingSaid) ? await leftRunning() : undefined;
  const endpoint = said ?? local ?? (stage === LOCAL.stage ? LOCAL.endpoint : undefined);
  const named = { ...(region && { region }), ...(profile && { profile }) };
  if (endpoint === undefined) return { isLocal: false, ...named };
  if (!URL.canParse(endpoint)) {
    throw new MailroomError(
      'BAD_ARGUMENT',
      `--endpoint is "${endpoint}"; expected an address like ${LOCAL.endpoint}.`,
    );
  }
  if (!LOOPBACK.test(endpoint)) return { isLocal: false, endpoint, ...named };
  return { isLocal: true, endpoint, region: LOCAL.region, credentials: LOCAL_CREDENTIALS, ...named };
}

/** The endpoints of the local engines that were left running in this folder. */
export async function localEndpoints(): Promise<string[]> {
  const files = await readdir('.local').catch(() => []);
  return files.flatMap((file) => {
    const port = /^engine-(\d+)\.json$/.exec(file)?.[1];
    return port === undefined ? [] : [`http://127.0.0.1:${port}`];
  });
}

/**
 * The endpoint of the local engine that was left running in this folder.
 *
 * @throws `WHICH_ENGINE` if there are several
 */
async function leftRunning(): Promise<string | undefined> {
  const endpoints = await localEndpoints();
  if (endpoints.length <= 1) return endpoints[0];
  throw new MailroomError(
    'WHICH_ENGINE',
    `Several local engines are running. Choose one with --endpoint: ${endpoints.join(', ')}.`,
  );
}
