#!/usr/bin/env node
// The `mailroom` command, from its TypeScript.
import { register } from 'tsx/esm/api';

// The age of Node 20 is not what an operator asked about.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';
register();
await import('../cli/main.ts');
