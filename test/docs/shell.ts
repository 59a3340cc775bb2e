/** What a reader puts in, by example: it will do as an id, as a name and as a reason. */
const SOMETHING = '01a1fba6-4458-7a41-9c37-3f5d2b8e1103';

/**
 * The commands of a shell block, each as its words. A line that ends with `\` goes on in the next; `&&`, `||`, `|` and `;` end a
 * command. What is in `$(…)` is not looked into.
 *
 * @example
 * commandsOf('npm ci && npm run demo   # 200 orders'); // [['npm', 'ci'], ['npm', 'run', 'demo']]
 */
export function commandsOf(shell: string): string[][] {
  return shell
    .replaceAll(/\\\n */g, '')
    .split('\n')
    .flatMap(commandsOfLine);
}

/**
 * The commands of the program, and of npm, that stand in the text of a page as code: `npx cdk-mailroom …` and `npm run …`. What the
 * reader puts in (`<eventId>`, `…`) is filled.
 */
export function shownCommandsOf(markdown: string): string[][] {
  const prose = markdown.replaceAll(/^ *(`{3,})[\s\S]*?^ *\1`*$/gm, '');
  return [...prose.matchAll(/`(?<shown>(?:npx cdk-mailroom|npm run)\s[^`]+)`/g)].flatMap(({ groups }) => {
    const shown = (groups?.shown ?? '').replaceAll(/\s+/g, ' ');
    return shown.includes('<command>') ? [] : commandsOf(shown);
  });
}

function commandsOfLine(line: string): string[][] {
  const commands: string[][] = [[]];
  for (const [token] of line.matchAll(/(?:"[^"]*"|'[^']*'|<[^>]*>|\$\([^)]*\)|[^\s"';&|<])+|&&|\|\|?|;|</g)) {
    if (token.startsWith('#')) break;
    if (/^(&&|\|\|?|;)$/.test(token)) commands.push([]);
    else commands.at(-1)?.push(wordOf(token));
  }
  return commands.filter((words) => words.length > 0);
}

function wordOf(token: string): string {
  return token
    .replaceAll(/<[^>]*>/g, SOMETHING)
    .replaceAll(/["']/g, '')
    .replaceAll('…', SOMETHING);
}
