let isOn = true;

/** Turns the single keys of this tab on or off: spoken words, too, arrive as keys. */
export function turnShortcuts(isWanted: boolean): void {
  isOn = isWanted;
}

/** True for a key of the page; false while they are off, or if the key belongs to a field, an open dialog or the browser. */
export function isShortcut({ ctrlKey, metaKey, altKey, target }: KeyboardEvent): boolean {
  if (!isOn || ctrlKey || metaKey || altKey || document.querySelector('dialog[open]') !== null) return false;
  return !(target instanceof HTMLElement && takesText(target));
}

/** The types of an input without text; the browser reads a type that it does not know as `text`. */
const TEXTLESS_TYPES = /^(button|checkbox|color|file|hidden|image|radio|range|reset|submit)$/;

/**
 * True for a visible field of text, or a list, which typed text searches. A field in a dialog keeps the focus until the frame
 * after the dialog is closed.
 */
function takesText(element: HTMLElement): boolean {
  if (!element.checkVisibility()) return false;
  if (element instanceof HTMLInputElement) return !TEXTLESS_TYPES.test(element.type);
  return element.isContentEditable || /^(TEXTAREA|SELECT)$/.test(element.tagName);
}
