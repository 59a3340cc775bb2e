import { prose } from '../terminal/prose.ts';
import type { ShellText } from '../terminal/shell.ts';
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

/** A change, or its plan: sentences about it, and the command that comes next. */
export interface ChangeText {
  readonly place: Place;
  /** The last sentence ends with a colon if there is a command. */
  readonly text: string;
  readonly next?: ShellText | undefined;
}

/** A change of one thing as text. */
export function changeText(
  { place, text, next }: ChangeText,
  { commandLine }: Pick<Deployment, 'commandLine'>,
): string {
  const command = next === undefined ? [] : [`  ${commandLine(next)}`];
  return [prose(placeText(place)), prose(text), ...command].join('\n');
}
