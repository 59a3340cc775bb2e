/** Every module that a file of JavaScript, or of declarations, asks for by a literal name. */
export function specifiersOf(code: string): string[] {
  const named = /(?:\bfrom|\bimport|\bimport\(|\brequire\()\s*(['"])(?<name>[^'"\s]+)\1/g;
  const directives = /^\/\/\/ <reference types="(?<name>[^"]+)"/gm;
  return [...withoutComments(code).matchAll(named), ...code.matchAll(directives)].flatMap(
    ({ groups }) => groups?.name ?? [],
  );
}

/** The modules that a bundle loads at its start. */
export function staticImports(bundle: string): string[] {
  return [...bundle.matchAll(/(?<=^|[;\n])import(?:[\w${},* ]*from)?\s*"(?<name>[^"]+)"/g)].flatMap(
    ({ groups }) => groups?.name ?? [],
  );
}

/** The package that a module belongs to: `@scope/name` of `@scope/name/file`. */
export function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

/** Examples in comments import what their reader has. */
function withoutComments(code: string): string {
  return code.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
}
