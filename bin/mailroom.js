#!/usr/bin/env node
// The `mailroom` command. Old versions of Node.js can read this file and the first import; they could not read the second.
import('./node-version.js').then(() => import('./command.js'));
