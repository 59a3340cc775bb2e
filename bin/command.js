// The `mailroom` command: runs the TypeScript sources in the repository, and the build in the published package.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';

// Otherwise the AWS SDK prints a notice about Node.js 20 before each command's output.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';

const source = new URL('../cli/main.ts', import.meta.url);
if (existsSync(source)) {
  const { register } = await import('tsx/esm/api');
  register();
  await import(source.href);
} else {
  try {
    await import('../dist/cli/main.js');
  } catch (error) {
    if (error?.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    const missing = missingClients();
    if (missing.length === 0) throw error;
    console.error(
      `The mailroom command needs ${missing.join(', ')}. Run: npm install --save-dev ${missing.join(' ')}`,
    );
    process.exitCode = 2;
  }
}

/** The clients of the AWS SDK that are not installed: they are optional, because an app without the command needs few of them. */
function missingClients() {
  const require = createRequire(import.meta.url);
  const { peerDependencies } = require('../package.json');
  // Only `doctor` uses that of IAM, and reports it if it is missing; bridges and functions with PostgreSQL use the others.
  const unused = ['client-iam', 'client-kinesis', 'client-sns', 'client-secrets-manager', 'rds-signer'].map(
    (name) => `@aws-sdk/${name}`,
  );
  return Object.keys(peerDependencies).filter((name) => {
    if (!name.startsWith('@aws-sdk/') || unused.includes(name)) return false;
    try {
      require.resolve(name);
      return false;
    } catch {
      return true;
    }
  });
}
