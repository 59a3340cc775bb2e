import { CONSOLE, FINDING, REFUSED } from './command.ts';
import type { ExplainedCode, Explanation, Section } from './explanation.ts';
import { ATTEMPTS, AWS, FINDINGS, HTTP, REJECTIONS } from './messages.ts';
import { LOCAL, REPOSITORY } from './tools.ts';
import { YOUR_CODE } from './your-code.ts';

/** The sections of docs/errors.md, in order. */
export const SECTIONS: readonly Section[] = [
  REJECTIONS,
  ATTEMPTS,
  FINDINGS,
  YOUR_CODE,
  AWS,
  HTTP,
  FINDING,
  REFUSED,
  CONSOLE,
  LOCAL,
  REPOSITORY,
];

/** Every code with its explanation: a code that no section explains does not compile. */
export const EXPLANATIONS: Readonly<Record<ExplainedCode, Explanation>> = {
  ...REJECTIONS.codes,
  ...ATTEMPTS.codes,
  ...FINDINGS.codes,
  ...YOUR_CODE.codes,
  ...AWS.codes,
  ...HTTP.codes,
  ...FINDING.codes,
  ...REFUSED.codes,
  ...CONSOLE.codes,
  ...LOCAL.codes,
  ...REPOSITORY.codes,
};

const OPENING = `# Errors

<!-- Made of tools/errors/ by test/docs/errors.test.ts: correct the text there. -->

The cause, the result and the remedy of every error code of Mailroom. Find the code in an error's \`code\`, in the \`error.code\` of a log line, in the
\`reason\` of a rejected message, or at the start of what the command prints; each of Mailroom's errors links to its entry here as \`help\`.

Codes that are not listed come from a handler's own \`PoisonMessage\`, or from AWS and Node.js. Tell errors apart by \`code\`, with \`isMailroomError(error, code)\` or
\`errorCode(error)\`: classes may be duplicated in a bundle, and messages may change.
`;

/** The text of docs/errors.md. */
export function errorsPage(): string {
  return [OPENING, ...SECTIONS.map(sectionText)].join('\n');
}

function sectionText({ title, text, codes }: Section): string {
  const entries = Object.entries(codes).sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    `## ${title}\n`,
    `${text}\n`,
    ...entries.map(([code, explanation]) => entryText(code, explanation)),
  ].join('\n');
}

function entryText(code: string, { cause, result, action }: Explanation): string {
  return `### ${code}\n\n- **Cause:** ${cause}\n- **Result:** ${result}\n- **Action:** ${action}\n`;
}
