import { Argument, Command } from 'commander';
import { EXIT, type Io } from '../terminal/io.ts';

/** The shells that the command supports. */
const SHELLS = ['bash', 'zsh', 'fish'] as const;

type CompletedShell = (typeof SHELLS)[number];

/** `mailroom completion`. */
export function completionCommand(io: Io): Command {
  return new Command('completion')
    .description('Prints a script that completes commands and options in your shell. It calls nothing.')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .addHelpText(
      'after',
      `
Examples:
  $ source <(npx cdk-mailroom completion bash)
  $ npx cdk-mailroom completion fish > ~/.config/fish/completions/mailroom.fish`,
    )
    .action((shell: CompletedShell, _options: object, command: Command) => {
      io.out(`${completionScript(shell, command.parent ?? command)}\n`);
      io.exitCode = EXIT.ok;
    });
}

/** The words that may follow a path of commands: `dlq/list` is followed by `--by`, `--limit`, … */
interface Completions {
  readonly path: string;
  readonly words: readonly string[];
}

/** The script for a shell, generated from a command and its subcommands. */
function completionScript(shell: CompletedShell, root: Command): string {
  const all = completionsOf(root, '');
  if (shell === 'fish') return fishScript(all);
  const zsh = shell === 'zsh' ? ['autoload -U +X bashcompinit && bashcompinit'] : [];
  return [...zsh, bashScript(all)].join('\n');
}

function completionsOf(command: Command, path: string): Completions[] {
  const help = command.createHelp();
  const subcommands = help.visibleCommands(command).filter((inner) => inner.name() !== 'help');
  const options = [...help.visibleOptions(command), ...help.visibleGlobalOptions(command)];
  const words = [
    ...subcommands.map((inner) => inner.name()),
    ...command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices),
    ...options.flatMap(({ long, argChoices = [] }) => [...(long ? [long] : []), ...argChoices]),
  ];
  const own = { path, words: [...new Set(words)] };
  const inner = subcommands.flatMap((child) =>
    completionsOf(child, path === '' ? child.name() : `${path}/${child.name()}`),
  );
  return [own, ...inner];
}

function bashScript(all: readonly Completions[]): string {
  const cases = all.map(({ path, words }) => `    '${path}') words='${words.join(' ')}' ;;`);
  const paths = all.map(({ path }) => path).join(' ');
  return `_mailroom() {
  local path= words= word next
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    next=\${path:+$path/}$word
    case ' ${paths} ' in *" $next "*) path=$next ;; esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _mailroom mailroom cdk-mailroom`;
}

function fishScript(all: readonly Completions[]): string {
  const cases = all.map(
    ({ path, words }) => `    case '${path}'\n      string split ' ' '${words.join(' ')}'`,
  );
  const paths = all.map(({ path }) => `'${path}'`).join(' ');
  return `function __mailroom_words
  set -l path ''
  for word in (commandline -opc)[2..-1]
    set -l next (string trim --left --chars=/ "$path/$word")
    if contains -- $next ${paths}
      set path $next
    end
  end
  switch $path
${cases.join('\n')}
  end
end
complete -c mailroom -c cdk-mailroom -f -a '(__mailroom_words)'`;
}
