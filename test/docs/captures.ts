/** A marker, and the block below it if there is one. */
const SHOWN = /^<!-- capture: (?<what>.*?) -->\n(?:```text\n[\s\S]*?^```\n)?/gm;

const WHAT = /^(?<name>[\w-]+)(?:, first (?<first>\d+)|, from "(?<from>[^"]+)")?$/;

/**
 * A page with the reviewed output of the command below each of its markers: `<!-- capture: status -->` shows all of `status.txt`,
 * `<!-- capture: status, first 5 -->` its first 5 lines, and `<!-- capture: help, from "Exit codes:" -->` the rest from a line on, without the exit code.
 *
 * @param read - returns a capture by its name
 * @throws Error If a marker cannot be read, or its line does not exist.
 */
export function withCaptures(markdown: string, read: (name: string) => string): string {
  return markdown.replaceAll(SHOWN, (...found) => {
    const { what = '' } = found.at(-1) as { what?: string };
    return `<!-- capture: ${what} -->\n\`\`\`text\n${chosen(what, read).join('\n')}\n\`\`\`\n`;
  });
}

function chosen(what: string, read: (name: string) => string): string[] {
  const { name, first, from } = WHAT.exec(what)?.groups ?? {};
  if (name === undefined)
    throw new Error(`"${what}" is not a capture: expected a name, "first <lines>" or "from".`);
  // A capture that differs between two widths has the narrow one first.
  const [narrow = ''] = read(name).split(/\n(?=\$ mailroom .*\(120 columns\))/);
  const lines = narrow
    .replace(/^\$ mailroom (.*?)(?: {4}\(.*\))?$/m, '$ npx cdk-mailroom $1')
    .replace(/^exit code \d+$/m, '($&)')
    .trimEnd()
    .split('\n');
  if (first !== undefined)
    return [...lines.slice(0, Number(first)), ...(Number(first) < lines.length ? ['…'] : [])];
  if (from === undefined) return lines;
  const at = lines.indexOf(from);
  if (at < 0) throw new Error(`The capture "${name}" has no line "${from}".`);
  return lines.slice(at).filter((line) => !/^\(exit code \d+\)$/.test(line));
}
