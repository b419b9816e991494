import { type ReactNode, useId, useLayoutEffect, useRef } from 'react';

interface QuestionProps {
  readonly title: string;
  /** What happens, on the button: "Discard 12 rejections". */
  readonly action: string;
  /** What happens takes nothing away. */
  readonly harmless?: boolean;
  readonly children: ReactNode;
  readonly onYes: () => void;
  readonly onNo: () => void;
}

/** Asks before something that cannot be undone or that others notice. Cancel comes first, so a dialog gives it the focus. */
export function Question({ title, action, harmless = false, children, onYes, onNo }: QuestionProps) {
  return (
    <Modal title={title} onClose={onNo}>
      {children}
      <div className="buttons">
        <button type="button" onClick={onNo}>
          Cancel
        </button>
        <button type="button" className={harmless ? 'primary' : 'danger'} onClick={onYes}>
          {action}
        </button>
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

/** The browser's own dialog: it keeps the focus inside, closes with Escape and gives the focus back. */
export function Modal({ title, onClose, children, wide = false }: ModalProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  // Closed before it leaves the document, or the focus would not go back to where it was.
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
