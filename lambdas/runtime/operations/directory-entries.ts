import { isDatabaseEngine } from '../base/database-engine.ts';
import { errorMessage, isMailroomError, MailroomError } from '../base/errors.ts';
import { isObject, parseJson } from '../base/json.ts';
import { SHARDS_MAX } from '../store/outbox-partition.ts';
import type { ConsumerEntry, DirectoryParameter, MailroomEntry } from './directory.ts';
import { refusePartsElsewhere } from './directory-parts.ts';

/** A parameter as it was read: its entry, or why it cannot be used. */
export type ReadEntry<E> = { readonly entry: E } | { readonly fault: string; readonly hints: EntryHints };

/** Members of an entry that cannot be used, to tell whose it may be: text that its writer chose. */
export interface EntryHints {
  readonly stack?: string | undefined;
  readonly bus?: string | undefined;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return isObject(value) && !Array.isArray(value);
}

/** A test of a member, and what the member must be. */
interface MemberForm {
  readonly is: (value: unknown) => boolean;
  readonly called: string;
}

type Forms<E> = { readonly [M in keyof E]-?: MemberForm & { readonly optional?: true } };

/** The latest time of a `Date`, and the longest retention that still adds up to one, about. */
const TIME_MAX_MS = 8_640_000_000_000_000;
const DAYS_MAX = 36_500;
/** A parameter has 8 KB at most; the numbers below only bound loops and sums. */
const COUNT_MAX = 1_000_000;

const TEXT: MemberForm = { is: (value) => typeof value === 'string' && value !== '', called: 'a string' };
const TEXTS: MemberForm = {
  is: (value) => Array.isArray(value) && value.every((one) => typeof one === 'string'),
  called: 'a list of strings',
};
const OBJECT: MemberForm = { is: isRecord, called: 'an object' };
const RULE: MemberForm = {
  is: (value) => hasTexts(value, ['name', 'bus']),
  called: 'an object with name and bus',
};
const BRIDGE: MemberForm = {
  is: (value) => hasTexts(value, ['kind', 'name']),
  called: 'an object with kind and name',
};

function count(least: number, most = COUNT_MAX): MemberForm {
  const is = (value: unknown) =>
    Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most;
  return { is, called: `a whole number from ${least} to ${most}` };
}

function optional(form: MemberForm): MemberForm & { readonly optional: true } {
  return { ...form, optional: true };
}

function hasTexts(value: unknown, members: readonly string[]): boolean {
  return isRecord(value) && members.every((member) => TEXT.is(value[member]));
}

const ENTRY_STACK = { stack: TEXT, stackPath: optional(TEXT) };

const MAILROOM: Forms<Omit<MailroomEntry, 'changedAt'>> = {
  ...ENTRY_STACK,
  table: TEXT,
  bus: TEXT,
  shards: count(1, SHARDS_MAX),
  streamFunction: TEXT,
  sweepFunction: TEXT,
  sweepRule: optional(TEXT),
  failureQueue: TEXT,
  sources: optional(TEXTS),
  schema: optional(count(0)),
  heartbeat: optional({
    is: (value) =>
      hasTexts(value, ['function', 'rule']) && isRecord(value) && count(1, TIME_MAX_MS).is(value.everyMs),
    called: 'an object with function, rule and everyMs',
  }),
};

const CONSUMER: Forms<Omit<ConsumerEntry, 'changedAt' | 'elsewhere'>> = {
  ...ENTRY_STACK,
  name: TEXT,
  service: TEXT,
  events: {
    is: (value) => Array.isArray(value) && value.every(isEntryEvent),
    called: 'a list of events, each with source and type',
  },
  rule: optional(TEXT),
  externalRule: optional(RULE),
  fairBy: optional(TEXT),
  order: optional(TEXT),
  forwardsTo: optional(BRIDGE),
  queue: TEXT,
  deadLetterQueue: TEXT,
  undeliveredQueue: optional(TEXT),
  function: TEXT,
  alias: optional(TEXT),
  domainKeys: optional(TEXTS),
  maxAttempts: count(1),
  batchSize: optional(count(1)),
  slo: optional(OBJECT), // `sloOf` reads it
  inboxRetentionDays: count(0, DAYS_MAX),
  inbox: optional({ is: isDatabaseEngine, called: '"postgres" or "mysql"' }),
  inboxSince: optional(count(0, TIME_MAX_MS)),
  schema: optional(count(0)),
};

function isEntryEvent(event: unknown): boolean {
  if (!isRecord(event) || !hasTexts(event, ['source', 'type'])) return false;
  const { filter, external, sequence } = event;
  return (
    (filter === undefined || isFilter(filter)) &&
    (external === undefined || isRecord(external)) &&
    (sequence === undefined || typeof sequence === 'boolean')
  );
}

/** Lists of tests and objects of fields. An operator of a later version is a test that matches nothing, so its operand is not checked. */
function isFilter(filter: unknown): boolean {
  return (
    isRecord(filter) &&
    Object.values(filter).every((condition) =>
      Array.isArray(condition) ? condition.every((test) => !Array.isArray(test)) : isFilter(condition),
    )
  );
}

/** Reads the entry of a Mailroom. @param table - its table, from the parameter's name */
export function readMailroomEntry(parameter: DirectoryParameter, table: string): ReadEntry<MailroomEntry> {
  return readEntry<MailroomEntry>(parameter, MAILROOM, { table });
}

/** Reads the entry of a consumer. @param name - its name, from the parameter's name */
export function readConsumerEntry(parameter: DirectoryParameter, name: string): ReadEntry<ConsumerEntry> {
  return readEntry<ConsumerEntry>(parameter, CONSUMER, { name });
}

/**
 * Any principal that may write a parameter chooses its value, so nothing of it is used before every member has the form that the
 * constructs write, names parts of this account only, and agrees with the parameter's name. It never throws: an entry of another team
 * is that team's fault. Recursion is bounded, because `parseJson` refuses deep values.
 */
function readEntry<E extends object>(
  parameter: DirectoryParameter,
  forms: Readonly<Record<string, MemberForm & { readonly optional?: true }>>,
  named: Readonly<Record<string, string>>,
): ReadEntry<E> {
  const { name, value, arn, changedAt } = parameter;
  let hints: EntryHints = {};
  const fault = (problem: string): ReadEntry<E> => ({ fault: badEntry(name, problem).message, hints });
  try {
    const entry = parseJson(value);
    if (!isRecord(entry)) return fault('it is not a JSON object');
    const { stack, bus } = entry;
    hints = {
      stack: typeof stack === 'string' ? stack : undefined,
      bus: typeof bus === 'string' ? bus : undefined,
    };
    if (arn !== undefined) refusePartsElsewhere(name, entry, arn);
    for (const [member, form] of Object.entries(forms)) {
      const is = entry[member];
      if (is === undefined ? form.optional : form.is(is)) continue;
      return fault(is === undefined ? `${member} is missing` : `its ${member} is not ${form.called}`);
    }
    for (const [member, expected] of Object.entries(named)) {
      if (entry[member] !== expected)
        return fault(`its ${member} is ${JSON.stringify(entry[member])}, which is not that of its name`);
    }
    return { entry: { ...entry, changedAt } as unknown as E };
  } catch (error) {
    if (isMailroomError(error) && error.code === 'BAD_DIRECTORY')
      return { fault: errorMessage(error), hints };
    return fault(isMailroomError(error) ? errorMessage(error) : 'it is not JSON');
  }
}

/** The error about a parameter that does not have the form that the constructs write. */
export function badEntry(parameter: string, problem: string): MailroomError {
  return new MailroomError(
    'BAD_DIRECTORY',
    `The parameter ${parameter} does not have the form that Mailroom writes: ${problem}. It was changed by hand: deploy its stack again with ` +
      '`npx cdk deploy --revert-drift`.',
  );
}
