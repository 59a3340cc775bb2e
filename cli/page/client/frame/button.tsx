import type { ButtonHTMLAttributes } from 'preact';

interface ButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'disabled' | 'onClick'> {
  /** It does nothing, e.g. while its work is under way. @default false */
  readonly isDisabled?: boolean;
  readonly onClick?: () => void;
}

/**
 * A button that keeps the focus while it does nothing. With the attribute `disabled` it would lose the focus, and a keyboard would
 * start again at the top of the page.
 *
 * @example
 * ```tsx
 * <Button isDisabled={isReading} onClick={read}>Read again</Button>
 * ```
 */
export function Button({ isDisabled = false, onClick, type = 'button', ...rest }: ButtonProps) {
  return (
    <button
      {...rest}
      type={type}
      aria-disabled={isDisabled ? 'true' : undefined}
      onClick={isDisabled ? undefined : onClick}
    />
  );
}
