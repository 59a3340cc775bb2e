import { Command, Option } from 'commander';
import type { GlobalOptions } from '../deployment/target.ts';
import { type CatalogChange, catalogChanges } from '../reports/catalog/catalog-changes.ts';
import { asyncApiOf, jsonSchemaOf, readCatalog } from '../reports/catalog/catalog-document.ts';
import { loadCatalog } from '../reports/catalog/load-catalog.ts';
import type { JsonObject } from '../reports/catalog/schema-source.ts';
import { escaped } from '../terminal/escaped.ts';
import { EXIT, fileText, type Io } from '../terminal/io.ts';
import { many } from '../terminal/output.ts';
import { paint } from '../terminal/paint.ts';
import { prose } from '../terminal/prose.ts';
import { shell } from '../terminal/shell.ts';
import { createTerminal, type Report, reportOf } from '../terminal/terminal.ts';
import { refuseSelection } from './command.ts';

interface ExportOptions {
  readonly format: 'asyncapi' | 'json-schema';
}

interface CheckOptions {
  readonly against: string;
}

/** The first argument of both commands. */
const MODULE = ['<module>', 'the .ts or .js file that exports the definitions by name'] as const;

/** `mailroom events export`. */
export function exportCommand(io: Io): Command {
  return new Command('export')
    .description(
      'Prints the catalog of a module as AsyncAPI 3.0 or JSON Schema. It runs the module, and calls nothing.',
    )
    .argument(...MODULE)
    .addOption(
      new Option('--format <name>', 'the format').choices(['asyncapi', 'json-schema']).default('asyncapi'),
    )
    .action(withModule<ExportOptions>(io, exportCatalog));
}

/** `mailroom events check`. */
export function checkCommand(io: Io): Command {
  return new Command('check')
    .description(
      'Compares the catalog of a module with an earlier export of it, and ends with 1 if a change is breaking. It runs the module, and calls nothing.',
    )
    .argument(...MODULE)
    .requiredOption('--against <file>', 'the earlier output of events export, or - for stdin')
    .action(withModule<CheckOptions>(io, checkCatalog));
}

/** Runs a command on a module, and prints its report. */
function withModule<Options extends object>(
  io: Io,
  run: (io: Io, module: string, options: Options) => Promise<Report>,
) {
  return async (module: string, _options: object, command: Command): Promise<void> => {
    const options = command.optsWithGlobals<GlobalOptions & Options>();
    refuseSelection(options, 'a catalog is a file on this machine. Leave it out.');
    const report = await run(io, module, options);
    await createTerminal(io, options.json ?? false).print(report);
    io.exitCode = report.exitCode;
  };
}

async function exportCatalog(_io: Io, module: string, { format }: ExportOptions): Promise<Report> {
  const catalog = await loadCatalog(module);
  const document = format === 'asyncapi' ? asyncApiOf(catalog) : jsonSchemaOf(catalog);
  return reportOf(document, undefined, () => jsonLines(document));
}

/** JSON on lines, without characters that a terminal acts on. */
function jsonLines(document: JsonObject): string {
  return JSON.stringify(document, null, 2).split('\n').map(escaped).join('\n');
}

async function checkCatalog(io: Io, module: string, { against }: CheckOptions): Promise<Report> {
  const before = readCatalog(against, await fileText(io, '--against', against));
  const after = readCatalog(module, JSON.stringify(asyncApiOf(await loadCatalog(module))));
  const changes = catalogChanges(before, after);
  const breaking = changes.filter((one) => one.breaking).length;
  const json = { breaking, compatible: changes.length - breaking, changes };
  const earlier = against === '-' ? 'the earlier export' : against;
  const shown = { changes, renew: shell`events export ${module}`, module, against: earlier };
  return reportOf(json, shown, checkText, breaking > 0 ? EXIT.attention : EXIT.ok);
}

interface Shown {
  readonly changes: readonly CatalogChange[];
  readonly renew: string;
  readonly module: string;
  readonly against: string;
}

function checkText({ changes, renew, module, against }: Shown): string {
  const [breaking, compatible] = [changes.filter(isBreaking), changes.filter((one) => !isBreaking(one))];
  const counts = `${many(breaking.length, 'breaking change')}, ${compatible.length} compatible`;
  return [
    prose(`${paint.bold(counts)}  ${module}, ${against}`),
    ...listed(paint.red('breaking'), breaking),
    ...listed('compatible', compatible),
    ...(breaking.length === 0
      ? []
      : [
          prose(
            `For another payload, raise the version and add upcast, or define another event. To accept these changes, replace ${against} with the output of:`,
          ),
          `  npx cdk-mailroom ${renew}`,
        ]),
  ].join('\n');
}

function isBreaking({ breaking }: CatalogChange): boolean {
  return breaking;
}

function listed(heading: string, changes: readonly CatalogChange[]): string[] {
  const lines = changes.map(({ source, type, path, text, consumersFirst }) => {
    const first = consumersFirst ? '; deploy every consumer first' : '';
    return prose(`  • ${type} of ${source}${path === null ? '' : `, ${path}`}: ${text}${first}`, 4);
  });
  return lines.length === 0 ? [] : [heading, ...lines];
}
