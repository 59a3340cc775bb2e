// Answers in place of a command that cannot be loaded, because packages that it depends on are not installed.
import { readFileSync } from 'node:fs';
import { installCommand } from '../dist/cli/terminal/install-command.js';

const read = (file) => JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8'));

function isInstalled(name) {
  try {
    import.meta.resolve(name);
    return true;
  } catch (error) {
    return error.code !== 'ERR_MODULE_NOT_FOUND';
  }
}

/**
 * Prints the version or the help if they were asked for, else the packages to install.
 *
 * @param error - of the import @param args - those of the command line @throws the error, if every package is installed
 */
export function withoutPackages(error, args) {
  const { name, version, dependencies } = read('../package.json');
  const missing = Object.keys(dependencies).filter((dependency) => !isInstalled(dependency));
  if (missing.length === 0) throw error;
  const words = args.filter((arg) => !arg.startsWith('-'));
  if (args.includes('--version') || args.includes('-V')) console.log(version);
  else if (args.includes('--help') || args.includes('-h') || words[0] === 'help')
    process.stdout.write(helpOf(words));
  else {
    console.error(
      `${name} needs packages that are not installed: ${missing.join(', ')}. Run: ${installCommand(missing, { dev: true })}`,
    );
    process.exitCode = 2;
  }
}

/** The help of the command that the words begin with, which the build has written. */
function helpOf(words) {
  const help = new Map(Object.entries(read('../dist/help.json')));
  const command = words.reduce((above, word) => {
    const below = `${above} ${word}`.trim();
    return help.has(below) ? below : above;
  }, '');
  return help.get(command);
}
