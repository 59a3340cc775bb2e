import { readFileSync } from 'node:fs';
import { ROOT } from './pages.ts';

/** The entry of one error code in docs/errors.md. */
export interface Explanation {
  readonly code: string;
  /** The heading above it. */
  readonly section: string;
  /** Its cause, its result and its action. */
  readonly parts: readonly string[];
}

const FORM = /^\n- \*\*Cause:\*\* (.*)\n- \*\*Result:\*\* (.*)\n- \*\*Action:\*\* (.*)$/;

/** Every entry of docs/errors.md, in its order. An entry of another form has no parts. */
export const EXPLANATIONS: readonly Explanation[] = readFileSync(`${ROOT}docs/errors.md`, 'utf8')
  .split(/^## /m)
  .slice(1)
  .flatMap((section) => {
    const [head = '', ...entries] = section.split(/^### /m);
    const [title = ''] = head.split('\n');
    return entries.map((entry) => {
      const [code = '', ...text] = entry.trimEnd().split('\n');
      const [, ...parts] = FORM.exec(text.join('\n')) ?? [];
      return { code, section: title, parts };
    });
  });
