/** A form that confirms a plan. */
export interface Confirmation {
  readonly reason: string;
  /** The text that was typed. */
  readonly typed: string;
}

/** The limits of a reason, as the command has them. */
const REASON_MIN = 3;
export const REASON_MAX = 500;

/**
 * The conditions that a plan still lacks before it can be applied, as sentences; empty once it can. The server checks them again.
 *
 * @param wanted - the text to type
 */
export function missingFrom({ reason, typed }: Confirmation, wanted: string): string[] {
  return [
    ...(reason.trim().length < REASON_MIN ? ['Write a reason.'] : []),
    ...(typed.trim() === wanted ? [] : [`Type ${wanted} to confirm.`]),
  ];
}
