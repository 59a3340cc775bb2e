import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { mailroomCommand } from '../../../cli/program.ts';
import { capturedIo } from '../../support/captured-io.ts';

const HEAD =
  '# Command options\n\nThe arguments and options of each [`mailroom`](cli.md) command, generated from the program. With `--help`, ' +
  'a command\nprints its own.';

test('docs/cli-options.md lists the arguments and options of every command', async () => {
  const program = await mailroomCommand(capturedIo().io, false);
  const sections = [
    section('Every command', program),
    ...runnable(program).map(([name, one]) => section(name, one)),
  ];
  const page = `${[HEAD, ...sections].join('\n\n')}\n`;
  await expect(page).toMatchFileSnapshot('../../../docs/cli-options.md');
});

/** The commands that do something themselves, by their words: `dlq` only has subcommands. */
function runnable(parent: Command, above = ''): (readonly [words: string, command: Command])[] {
  return parent.commands.flatMap((command) => {
    const words = `${above}${command.name()}`;
    const inner = runnable(command, `${words} `);
    const isGroup = inner.length > 0 && command.options.length + command.registeredArguments.length === 0;
    return [...(isGroup ? [] : [[words, command] as const]), ...inner];
  });
}

function section(title: string, command: Command): string {
  const help = command.createHelp();
  const given = command.registeredArguments.map((argument) => {
    const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
    return [argument.required ? `<${name}>` : `[${name}]`, help.argumentDescription(argument)] as const;
  });
  const options = command.options.map((one) => [one.flags, help.optionDescription(one)] as const);
  const rows = [...given, ...options].map(([term, meaning]) => `| \`${term}\` | ${inTable(meaning)} |`);
  const table = ['| argument or option | meaning |', '| --- | --- |', ...rows].join('\n');
  return [`## ${title}`, inTable(command.description()), ...(rows.length === 0 ? [] : [table])].join('\n\n');
}

/** A text in which no `<name>` is taken for HTML, and no `|` for the end of a cell. */
function inTable(text: string): string {
  return text.replaceAll(/[\w:-]*<[^>]+>/g, '`$&`').replaceAll('|', '\\|');
}
