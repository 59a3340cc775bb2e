// Ends the process on a Node.js that is too old, with one sentence, before anything fails in a less readable way. Only
// syntax that every Node.js can read, as a script or as a module: no import, no export.
const needed = '20.19';

const [major, minor] = process.versions.node.split('.').map(Number);
const [neededMajor, neededMinor] = needed.split('.').map(Number);

if (major < neededMajor || (major === neededMajor && minor < neededMinor)) {
  console.error(
    `Mailroom needs Node.js ${needed} or later, and this is ${process.versions.node}: install a newer one, or switch with your version manager.`,
  );
  process.exit(2);
}
