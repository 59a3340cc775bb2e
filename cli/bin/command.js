// Runs the TypeScript sources in the repository, and the build in the published package.
import { existsSync } from 'node:fs';

// Otherwise the AWS SDK prints a notice about Node.js 20 before each command's output.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';

const source = new URL('../main.ts', import.meta.url);
if (existsSync(source)) {
  const { register } = await import('tsx/esm/api');
  register();
  await import(source.href);
} else {
  await import('../dist/cli/main.js').catch(async (error) => {
    const { withoutPackages } = await import('./missing-packages.js');
    withoutPackages(error, process.argv.slice(2));
  });
}
