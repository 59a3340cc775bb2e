import { hostname, userInfo } from 'node:os';
import open from 'open';
import type { Io } from '../../terminal/io.ts';
import { type ShellText, shell } from '../../terminal/shell.ts';

/** Opens a file in the user's browser. @throws if there is none */
export async function openInBrowser(file: string): Promise<void> {
  const child = await open(file);
  // A program that is missing is reported later, as an event; without a listener it would end the process.
  child.on('error', () => {});
}

/** True if a browser on this machine could show the page to the user: not over SSH, and on Linux only with a display. */
export function hasBrowser(env: Io['env'], platform: NodeJS.Platform = process.platform): boolean {
  if (env.SSH_CONNECTION !== undefined || env.SSH_TTY !== undefined) return false;
  const isLinux = platform === 'linux' && env.WSL_DISTRO_NAME === undefined;
  return !isLinux || env.DISPLAY !== undefined || env.WAYLAND_DISPLAY !== undefined;
}

/** The commands that show the page on the user's own machine, if this one is reached over SSH. */
export interface Tunnel {
  /** Forwards the same port: the page has one address. */
  readonly forward: ShellText;
  /** Copies the redirect file. */
  readonly copy: ShellText;
}

/** @returns `undefined` if the command does not run over SSH */
export function tunnelOf(
  env: Io['env'],
  { port, file }: { readonly port: string; readonly file: string },
): Tunnel | undefined {
  if (env.SSH_CONNECTION === undefined) return undefined;
  const [, , address = hostname(), sshPort = '22'] = env.SSH_CONNECTION.split(' ');
  const user = userInfo().username;
  const isIpv6 = address.includes(':');
  const withPort = (command: string, flag: string): string[] => [
    command,
    ...(sshPort === '22' ? [] : [flag, sshPort]),
  ];
  const forwarded = `${port}:127.0.0.1:${port}`;
  return {
    forward: shell`${[...withPort('ssh', '-p'), '-N', '-L', forwarded, `${user}@${address}`]}`,
    // scp takes what precedes the first colon for the host, unless it is in brackets.
    copy: shell`${[...withPort('scp', '-P'), `${user}@${isIpv6 ? `[${address}]` : address}:${file}`, '.']}`,
  };
}
