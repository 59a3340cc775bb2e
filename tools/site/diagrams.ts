import { renderMermaidSVG } from 'beautiful-mermaid';

/** The colors are those of the page, so a diagram follows its light or dark scheme. */
const LOOK = {
  bg: 'var(--vp-c-bg)',
  fg: 'var(--vp-c-text-1)',
  line: 'var(--vp-c-text-3)',
  muted: 'var(--vp-c-text-2)',
  border: 'var(--vp-c-divider)',
  surface: 'var(--vp-c-bg-soft)',
  padding: 8,
  layerSpacing: 28,
  transparent: true,
};

/**
 * Draws a Mermaid diagram as SVG in HTML, without a browser. Its style sheet is the site's: docs/.vitepress/theme/site.css.
 *
 * @throws Error If the diagram cannot be read; it quotes the first line.
 * @example
 * drawn('flowchart LR\n  a --> b\n'); // '<figure class="diagram" …><svg …'
 */
export function drawn(code: string): string {
  try {
    const svg = crossed(code, renderMermaidSVG(code, LOOK).replace(/<style>[\s\S]*?<\/style>/g, ''));
    // Wide pictures scroll instead of shrinking until their text is too small to read.
    const width = Math.ceil(Number(/ width="([\d.]+)"/.exec(svg)?.[1] ?? 0) * 0.8);
    return `<figure class="diagram" style="--least-width: ${width}px" tabindex="0" v-pre>${svg}</figure>\n`;
  } catch (error) {
    const [first] = code.split('\n');
    throw new Error(
      `The diagram "${first}" cannot be drawn: ${(error as Error).message}. Simplify it, or extend tools/site/diagrams.ts.`,
    );
  }
}

const CROSS =
  '<marker id="seq-cross" markerWidth="9" markerHeight="9" refX="8" refY="4" orient="auto">' +
  '<path d="M1 1 7 7M7 1 1 7" stroke="var(--vp-c-danger-1)" stroke-width="1.5" /></marker>';

/** The arrows of a sequence diagram that end in a cross (`-x`), which the library draws like all others. */
function crossed(code: string, svg: string): string {
  const crosses = [...code.matchAll(/^ *\w+ *(?<arrow>--?(?:>>?|x|\)))/gm)].map(({ groups }) =>
    groups?.arrow?.endsWith('x'),
  );
  if (!code.startsWith('sequenceDiagram') || !crosses.includes(true)) return svg;
  let message = 0;
  const drawn = svg.replaceAll(/<g class="message"[\s\S]*?<\/g>/g, (arrow) =>
    crosses[message++] ? arrow.replace(/url\(#seq-arrow[\w-]*\)/, 'url(#seq-cross)') : arrow,
  );
  if (message !== crosses.length) throw new Error(`${crosses.length} messages became ${message} arrows`);
  return drawn.replace('<defs>', `<defs>${CROSS}`);
}
