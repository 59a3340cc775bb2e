import { Option } from 'commander';
import { EACH_MAX } from '../reports/dead-letters/dead-letter-text.ts';
import { durationArgument, reasonArgument } from '../terminal/arguments.ts';
import { duration } from '../terminal/times.ts';
import { timeArgument } from '../terminal/window.ts';

/** `--reason` of a command that has `--apply`. */
export function reasonOption(): Option {
  return new Option('--reason <text>', 'why; required with --apply and stored with the change').argParser(
    reasonArgument,
  );
}

/** `--effects-checked`, with the digest of the effects that a plan has shown: it covers no others. */
export function effectsCheckedOption(): Option {
  return new Option(
    '--effects-checked [digest]',
    'you have asked the providers of all effects that the plan names; its digest covers no others',
  );
}

/** `--verbose` of the commands that group dead letters. */
export function verboseOption(): Option {
  return new Option(
    '--verbose',
    `show each dead letter; by default more than ${EACH_MAX} are grouped by cause`,
  );
}

/** `--by cause`. */
export function byOption(): Option {
  return new Option('--by <what>', 'group by').choices(['cause']);
}

/** `--since` with its default, and `--at`. @param what - what the range is for, e.g. `how far back to search` */
export function windowOptions(what: string, defaultMs: number): [Option, Option] {
  return [
    new Option('--since <duration>', what)
      .argParser(durationArgument)
      .default(defaultMs, shortText(defaultMs)),
    new Option('--at <time>', 'read around this time, --since before it and after it, e.g. 14:00').argParser(
      timeArgument,
    ),
  ];
}

/** A default as it is typed: `1h`, `7d`. */
function shortText(ms: number): string {
  return duration(ms)
    .replace(/ (d|h)$/, '$1')
    .replace(/ min$/, 'm');
}

/** `--format`. */
export function formatOption(): Option {
  return new Option('--format <name>', 'print the list for another program').choices(['csv', 'jsonl']);
}
