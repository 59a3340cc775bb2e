import type { StandardSchemaV1 } from '@standard-schema/spec';
import { defineEvent } from '../../../lambdas/runtime/events/event.ts';

/** What the schema of {@link anything} was shown, oldest first. */
interface Shown {
  readonly values: unknown[];
}

/** An event type whose payload may be anything, and which keeps what its schema was shown. */
export function anything(type = 'Anything') {
  const shown: Shown = { values: [] };
  const schema: StandardSchemaV1<unknown, unknown> = {
    '~standard': {
      version: 1,
      vendor: 'property',
      validate: (value) => {
        shown.values.push(structuredClone(value));
        return { value };
      },
    },
  };
  return {
    shown,
    Anything: defineEvent({ source: 'things', type, version: 1, aggregateType: 'Thing', schema }),
  };
}
