/** The n-th id of one kind, in the form of a UUID: the same in every run. */
export function sequentialId(kind: number, n: number): string {
  const hex = (value: number, digits: number) => value.toString(16).padStart(digits, '0');
  return `00000000-0000-4000-8${hex(kind, 3)}-${hex(n, 12)}`;
}
