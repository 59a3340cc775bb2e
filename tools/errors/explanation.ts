import type { MailroomErrorCode } from '../../lambdas/runtime/base/error-codes.ts';

/** The explanation of one code, in Markdown: complete sentences. */
export interface Explanation {
  readonly cause: string;
  /** The effect on the event, the message or the request. */
  readonly result: string;
  readonly action: string;
}

/** The codes that one section of docs/errors.md explains. */
export interface Section<Code extends string = string> {
  readonly title: string;
  /** A paragraph above the codes. */
  readonly text: string;
  readonly codes: Readonly<Record<Code, Explanation>>;
}

/** A code of the example, the demo, `npm run verify` or the benchmarks: tools of the repository, which the package does not contain. */
type ToolErrorCode =
  | 'BAD_NAME'
  | 'BAD_STAGE'
  | 'DEMO_OVER'
  | 'DESTROY_FAILED'
  | 'NO_ACCOUNT'
  | 'NO_BROKER'
  | 'NO_CONSENT'
  | 'NOT_BOOTSTRAPPED'
  | 'NOT_THIS_ENGINE'
  | 'OTHER_ENDPOINT'
  | 'UNKNOWN_PART'
  | 'WHICH_TARGET';

/** Every code that docs/errors.md explains. */
export type ExplainedCode = MailroomErrorCode | ToolErrorCode;

/** Checks that a section explains only codes that exist, and keeps which ones. */
export function section<Code extends ExplainedCode>(section: Section<Code>): Section<Code> {
  return section;
}
