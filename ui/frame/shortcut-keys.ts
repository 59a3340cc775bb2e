let isOn = true;

/** Turns the single keys of this tab on or off: spoken words, too, arrive as keys. */
export function turnShortcuts(isWanted: boolean): void {
  isOn = isWanted;
}

/** True for a key of the page; false while they are off, or if the key belongs to a field, an open dialog or the browser. */
export function isShortcut({ ctrlKey, metaKey, altKey, target }: KeyboardEvent): boolean {
  if (!isOn || ctrlKey || metaKey || altKey || document.querySelector('dialog[open]') !== null) return false;
  return !(
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}
