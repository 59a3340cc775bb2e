import { startProcess } from './server-process.ts';

// Starts a server, prints its id, and waits to be killed.
const [, , log = ''] = process.argv;
const { pid } = startProcess({
  command: 'sleep',
  args: ['3600'],
  cwd: '/',
  env: { PATH: '/usr/bin:/bin' },
  log,
});
console.log(pid);
process.stdin.resume();
