import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { type OperationToRecord, recordOperation } from '../../lambdas/runtime/store/operation-record.ts';
import type { Deployment } from '../deployment/deployment.ts';
import { type Place, placeOf, placeText } from '../deployment/place.ts';
import { ACK, ACK_MAX_MS, ACK_REMOVE, readAcks } from '../reports/findings/acknowledgements.ts';
import type { Finding } from '../reports/findings/findings.ts';
import { statusFindings } from '../reports/status/status-findings.ts';
import { createStatusReader } from '../reports/status/status-reader.ts';
import { applyWords, type ChangeOptions } from '../terminal/change.ts';
import { headedList } from '../terminal/listing.ts';
import { clipped } from '../terminal/output.ts';
import { prose } from '../terminal/prose.ts';
import { shell } from '../terminal/shell.ts';
import { time } from '../terminal/times.ts';
import type { OperatorChange } from './change.ts';

/** A finding as it is typed, e.g. `dead-letters/consumer:payments=12`. */
export interface NamedFinding {
  /** The id of a finding, or its part: all findings of that part. */
  readonly name: string;
  /** The count above which the acknowledgement ends. @default the present one */
  readonly upTo?: number;
}

/** The acknowledgements to make or to remove. */
export interface AckOptions extends ChangeOptions {
  readonly findings: readonly NamedFinding[];
  /** The end that was meant, given the current time; both in epoch milliseconds. */
  readonly until?: (now: number) => number;
}

/** Acknowledgements to make or to remove. */
interface AckPlan<Json> {
  readonly place: Place;
  readonly operations: readonly Omit<OperationToRecord, 'by' | 'reason'>[];
  /** The words of the command that applies it. */
  readonly words: readonly string[];
  readonly json: Json;
}

/** `mailroom ack`. */
export const acknowledge = recorded(
  async (deployment, options) => {
    const now = deployment.clock.now();
    const until = options.until?.(now) ?? now + ACK_MAX_MS;
    if (until <= now || until > now + ACK_MAX_MS) {
      throw new MailroomError(
        'BAD_ARGUMENT',
        `--until is ${time(until)}; it must be within the next 30 days (it is ${time(now)}). Nothing was changed.`,
      );
    }
    const all = statusFindings(await createStatusReader(deployment, false).read(), deployment);
    const known = all.filter(
      (finding): finding is Finding & { readonly id: string } => finding.id !== undefined,
    );
    const chosen = named(
      options.findings,
      known,
      ({ id }) => id,
      (name, ids) =>
        `Status has no finding "${name}". ${ids === '' ? 'It has none now.' : `Its findings: ${ids}.`}`,
    );
    // A finding without a count is one thing: a number would let it cover others of its kind.
    const findings = chosen.map(({ one: { id, what, count }, upTo = count }) => ({
      id,
      what,
      upTo: count === null ? null : upTo,
    }));
    const end = new Date(until).toISOString();
    return {
      operations: findings.map(({ id, upTo }) => ({
        command: ACK,
        subject: `${id} until ${end}${upTo === null ? '' : `, up to ${upTo}`}`,
        ...{ finding: id, until, upTo: upTo ?? undefined },
      })),
      words: [
        'ack',
        ...findings.map(({ id, upTo }) => (upTo === null ? id : `${id}=${upTo}`)),
        '--until',
        end,
      ],
      json: { until, findings },
    };
  },
  ({ until, findings }, applied) =>
    headedList(
      `${applied ? 'Acknowledged' : 'Would acknowledge'} until ${time(until)}:`,
      findings.map(
        ({ id, what, upTo }) =>
          `${what} [${id}]${upTo === null ? '' : `, until it counts more than ${upTo}`}`,
      ),
    ),
);

/** `mailroom ack remove`. */
export const removeAcks = recorded(
  async ({ stored, clock }, options) => {
    const known = await readAcks(stored, clock.now());
    const chosen = named(
      options.findings,
      known,
      ({ finding }) => finding,
      (name, ids) => `"${name}" is not acknowledged. ${ids === '' ? 'Nothing is.' : `Acknowledged: ${ids}.`}`,
    );
    const acks = chosen.map(({ one }) => one);
    const ids = acks.map(({ finding }) => finding);
    return {
      operations: ids.map((finding) => ({ command: ACK_REMOVE, subject: finding, finding })),
      words: ['ack', 'remove', ...ids],
      json: { acks },
    };
  },
  ({ acks }, applied) =>
    headedList(
      applied ? 'Ended:' : 'Would end:',
      acks.map(
        ({ finding, by, until }) =>
          `${clipped(finding)}, acknowledged by ${clipped(by)} until ${time(until)}`,
      ),
    ),
);

/** A change that is all in its records. */
function recorded<Json extends object>(
  planOf: (deployment: Deployment, options: AckOptions) => Promise<Omit<AckPlan<Json>, 'place'>>,
  textOf: (json: Json, applied: boolean) => string,
): OperatorChange<AckOptions, AckPlan<Json>, true, Place & Json & { readonly applied: boolean }> {
  return {
    plan: async (deployment, options) => ({
      ...(await planOf(deployment, options)),
      place: await placeOf(deployment),
    }),
    apply: async (deployment, { operations }, { reason }) => {
      const by = await deployment.operator();
      for (const operation of operations) await recordOperation(deployment, { ...operation, by, reason });
      return true;
    },
    result: (_deployment, { plan: { place, json }, made: applied = false }) => ({
      json: { ...place, ...json, applied },
    }),
    text: ({ commandLine }, { plan: { place, json, words }, made: applied = false }, options) =>
      [
        prose(placeText(place)),
        textOf(json, applied),
        'Alarms are not changed.',
        ...(applied
          ? []
          : [
              'Nothing was changed. To apply it:',
              `  ${commandLine(shell`${[...words, ...applyWords(options)]}`)}`,
            ]),
      ].join('\n'),
  };
}

/** Finds what the names mean. @throws `BAD_ARGUMENT` if one of them means nothing, with the names that are possible */
function named<Known>(
  given: readonly NamedFinding[],
  known: readonly Known[],
  idOf: (one: Known) => string,
  none: (name: string, ids: string) => string,
): { readonly one: Known; readonly upTo: number | undefined }[] {
  const ids = known.map(idOf);
  const found = new Map<string, { readonly one: Known; readonly upTo: number | undefined }>();
  for (const { name, upTo } of given) {
    const meant = known.filter((one) => {
      const id = idOf(one).toLowerCase();
      return id === name.toLowerCase() || id.split('/')[1] === name.toLowerCase();
    });
    if (meant.length === 0)
      throw new MailroomError(
        'BAD_ARGUMENT',
        `${none(name, ids.map((id) => clipped(id)).join(', '))} Nothing was changed.`,
      );
    for (const one of meant) found.set(idOf(one), { one, upTo });
  }
  return [...found.values()];
}
