import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

const CSS = readFileSync(new URL('../../../../../cli/page/client/page.css', import.meta.url), 'utf8');
const TOKENS = CSS.slice(0, CSS.indexOf('/* Ground */'));

const light = tokensIn(TOKENS.replaceAll(/light-dark\(([^,()]+), [^,()]+\)/g, '$1'));
const dark = tokensIn(TOKENS.replaceAll(/light-dark\([^,()]+, ([^,()]+)\)/g, '$1'));

/** Every ground that text or the border of a control is drawn on. */
const GROUNDS = ['ground', 'panel', 'sunken'];
const TEXTS = ['text', 'text-2', 'accent', 'ok', 'look', 'broken', 'busy', 'idle'];

describe.each([
  ['light', light],
  ['dark', dark],
])('in the %s scheme', (_name, tokens) => {
  const contrast = (one: string, other: string) => contrastOf(tokens.get(one) ?? '', tokens.get(other) ?? '');

  test('every color of a text and of a state has 4.5:1 on each ground', () => {
    const grounds = [...GROUNDS, 'look-soft', 'broken-soft'];
    expect([...tokens.keys()]).toEqual(expect.arrayContaining([...TEXTS, ...grounds, 'line-strong']));
    const pairs = TEXTS.flatMap((text) => grounds.map((ground) => [text, ground] as const));
    expect(pairs.filter(([text, ground]) => contrast(text, ground) < 4.5)).toEqual([]);
    const bands = ['band-local', 'band-aws'].filter((band) => contrast('on-band', band) < 4.5);
    expect(bands).toEqual([]);
  });

  test('the borders of controls and the edges of the diagram have 3:1 on each ground', () => {
    expect(GROUNDS.filter((ground) => contrast('line-strong', ground) < 3)).toEqual([]);
  });
});

/** The colors among the custom properties of a rule, as `rrggbb`. */
function tokensIn(css: string): ReadonlyMap<string, string> {
  const found = [...css.matchAll(/--([\w-]+): #([0-9a-f]{3}|[0-9a-f]{6});/g)];
  return new Map(
    found.map(([, name = '', hex = '']) => [name, hex.length === 3 ? hex.replace(/./g, '$&$&') : hex]),
  );
}

/** The contrast ratio of WCAG 2.2. */
function contrastOf(one: string, other: string): number {
  const [dark = 0, bright = 0] = [luminanceOf(one), luminanceOf(other)].sort((a, b) => a - b);
  return (bright + 0.05) / (dark + 0.05);
}

function luminanceOf(hex: string): number {
  const [r = 0, g = 0, b = 0] = [0, 2, 4].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
