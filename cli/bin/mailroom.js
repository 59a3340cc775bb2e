#!/usr/bin/env node
// The `mailroom` command. Any Node.js can parse this file and the first import, which ends an old one before it fails to parse the second.
import('./node-version.js').then(() => import('./command.js'));
