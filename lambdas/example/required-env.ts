/**
 * Reads a required setting.
 *
 * @throws naming the variable, if it is not set
 *
 * @example
 * ```ts
 * const functionName = requiredEnv('BANK_FUNCTION_NAME');
 * ```
 */
export function requiredEnv(name: string): string {
  const value = process.env[name];
  if (value) return value;
  throw new Error(`Environment variable ${name} is not set; the stack that deploys this function sets it.`);
}
