/** Code, which may look like a link: fenced blocks and code within a line. */
const CODE = /^ *(`{3,})[\s\S]*?^ *\1`*$|`[^`\n]*`/gm;

/**
 * Where the links of a page lead that stay in the repository: `operating.md#a-heading`, `../lib`, `#a-heading`.
 *
 * @example
 * linksOf('[a](b.md#c), [d](https://example.com)\n\n[e]: f.md'); // ['b.md#c', 'f.md']
 */
export function linksOf(markdown: string): string[] {
  const prose = markdown.replaceAll(CODE, '');
  const inline = [...prose.matchAll(/\]\(\s*(?<target>[^()\s]+)[^()]*\)/g)];
  const defined = [...prose.matchAll(/^\[[^\]]+\]:\s*(?<target>\S+)/gm)];
  const targets = [...inline, ...defined].map(({ groups }) => groups?.target ?? '');
  return targets.filter((target) => !/^[a-z][a-z+.-]*:/i.test(target));
}

/**
 * The names by which the headings of a page can be linked to, as GitHub makes them: lower case, spaces as `-`, without
 * punctuation; a name that is taken gets a number.
 *
 * @example
 * headingIds('# What is `why`?\n## Why\n## Why\n'); // ['what-is-why', 'why', 'why-1']
 */
export function headingIds(markdown: string): string[] {
  const ids: string[] = [];
  const taken = new Map<string, number>();
  const text = markdown.replaceAll(/^ *(`{3,})[\s\S]*?^ *\1`*$/gm, '');
  for (const { groups } of text.matchAll(/^#{1,6} +(?<heading>.*?) *#*$/gm)) {
    const id = (groups?.heading ?? '')
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(/\s/g, '-');
    const times = taken.get(id) ?? 0;
    taken.set(id, times + 1);
    ids.push(times === 0 ? id : `${id}-${times}`);
  }
  return ids;
}
