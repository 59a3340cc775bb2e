import { MailroomError } from '../base/errors.ts';
import type { AnyEventDefinition } from './event.ts';
import { fullIssues, maskedIssues } from './payload-issues.ts';

/**
 * Validates a payload.
 *
 * @returns the schema's output, with its defaults and transforms applied
 * @throws `INVALID_PAYLOAD`, naming up to five fields and what is wrong with them, without payload values
 */
export async function validateData(
  definition: Pick<AnyEventDefinition, 'type' | 'schema' | 'exposeIssues'> & { readonly version?: number },
  data: unknown,
): Promise<unknown> {
  const result = await definition.schema['~standard'].validate(data);
  if (result.issues === undefined) return result.value;
  const { exposeIssues, schema, type, version } = definition;
  const issues = exposeIssues ? fullIssues(result.issues) : maskedIssues(schema, result.issues);
  throw new MailroomError(
    'INVALID_PAYLOAD',
    `The payload of ${type}${version === undefined ? '' : ` v${version}`} is not valid: ${issues.replace(/\.$/, '')}.`,
  );
}
