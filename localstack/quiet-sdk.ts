// Imported first, for its effect: a client of the AWS SDK warns about the age of Node 20 when it is made, and child processes
// inherit the variable. `cli/bin/command.js` does the same for the `mailroom` command.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';
