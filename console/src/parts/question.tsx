import { type ReactNode, useId, useLayoutEffect, useRef } from 'react';
import { Press } from './press.tsx';

interface QuestionProps {
  readonly title: string;
  /** The button label, such as "Discard 12 rejections". */
  readonly action: string;
  /** Whether the action does not delete anything. */
  readonly harmless?: boolean;
  /** Whether the question is still incomplete, so that nobody can say yes. */
  readonly blocked?: boolean;
  readonly children: ReactNode;
  readonly onYes: () => void;
  readonly onNo: () => void;
}

/**
 * Asks for confirmation before an action that cannot be undone or that others notice. Cancel is the first button, so the
 * dialog focuses it.
 */
export function Question(props: QuestionProps) {
  const { title, action, harmless = false, blocked = false, children, onYes, onNo } = props;
  return (
    <Modal title={title} onClose={onNo}>
      {children}
      <div className="buttons">
        <button type="button" onClick={onNo}>
          Cancel
        </button>
        <Press className={harmless ? 'primary' : 'danger'} blocked={blocked} onClick={onYes}>
          {action}
        </Press>
      </div>
    </Modal>
  );
}

interface ModalProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
  readonly wide?: boolean;
}

/**
 * Shows a modal dialog. It uses the browser's own dialog, which traps the focus, closes on Escape and restores the focus.
 */
export function Modal({ title, onClose, children, wide = false }: ModalProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  // Close the dialog before it leaves the document. Otherwise, the browser would not restore the focus.
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    return () => shown?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={heading}
      className={wide ? 'dialog-wide' : undefined}
      onCancel={onClose}
    >
      <h2 id={heading}>{title}</h2>
      {children}
    </dialog>
  );
}
