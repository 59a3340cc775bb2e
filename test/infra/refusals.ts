/** What is said where settings are refused: each case with its error. A case that is accepted has none. */
export function refusalsOf<Props>(
  cases: Readonly<Record<string, Props>>,
  make: (props: Props) => unknown,
): string {
  const texts = Object.entries(cases).map(([what, props]) => {
    try {
      make(props);
      return `# ${what}\nNOT REFUSED\n`;
    } catch (error) {
      return `# ${what}\n${String(error).replaceAll(process.cwd(), '<folder>')}\n`;
    }
  });
  return texts.join('\n');
}
