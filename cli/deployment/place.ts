import type { Deployment } from './deployment.ts';

/** The Mailroom that a change applies to. */
export interface Place {
  readonly stack: string;
  readonly account: string;
  readonly region: string;
}

/** The place of a deployment. The account is that of the caller, in which the directory was found. */
export async function placeOf({
  directory,
  region,
  operator,
}: Pick<Deployment, 'directory' | 'region' | 'operator'>): Promise<Place> {
  const [, , , , account = ''] = (await operator()).split(':');
  return { stack: directory.mailroom.stack, account: account || 'unknown', region };
}

/** The line above every change and its plan. */
export function placeText({ stack, account, region }: Place): string {
  return `Stack ${stack}, account ${account}, region ${region}`;
}
