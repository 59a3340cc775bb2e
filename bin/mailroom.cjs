#!/usr/bin/env node
// Runs the command of @cdk-mailroom/cli, or says that it is missing. Package managers link the commands of two packages with one
// name differently; from here or directly, the same command runs. Any Node.js can parse this file.
// biome-ignore-start lint/style/useNodejsImportProtocol: old versions of Node.js do not know it
const { dirname, join } = require('path');
const { pathToFileURL } = require('url');
// biome-ignore-end lint/style/useNodejsImportProtocol: see above

const NAME = '@cdk-mailroom/cli';

/** The folder of the installed command: that of the app in the current folder, or the one beside this package. */
function commandFolder() {
  try {
    return dirname(require.resolve(`${NAME}/package.json`, { paths: [process.cwd(), __dirname] }));
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND') throw error;
    return undefined;
  }
}

const folder = commandFolder();
if (folder === undefined) {
  const { installCommand } = require('../dist/cjs/packages/install-command.js');
  const message = `The mailroom command is the package ${NAME}, which is not installed. Run: ${installCommand([NAME], { dev: true })}`;
  const args = process.argv.slice(2);
  // Both packages have one version.
  if (args.includes('--version') || args.includes('-V')) console.log(require('../package.json').version);
  else if (args.includes('--help') || args.includes('-h')) console.log(message);
  else {
    console.error(message);
    process.exitCode = 2;
  }
} else {
  import(pathToFileURL(join(folder, 'bin', 'mailroom.js')).href);
}
