// The `mailroom` command: in the repository from its TypeScript, in the published package from what was built of it.
import { existsSync } from 'node:fs';

// The age of Node 20 is not what an operator asked about.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';

const source = new URL('../cli/main.ts', import.meta.url);
if (existsSync(source)) {
  const { register } = await import('tsx/esm/api');
  register();
  await import(source.href);
} else {
  await import('../dist/cli/main.js');
}
