import { type ReactNode, useEffect, useId, useRef } from 'react';

interface QuestionProps {
  readonly title: string;
  /** What happens, on the button: "Discard 12 rejections". */
  readonly action: string;
  readonly children: ReactNode;
  readonly onYes: () => void;
  readonly onNo: () => void;
}

/** Asks before something that cannot be undone. The focus starts on Cancel. */
export function Question({ title, action, children, onYes, onNo }: QuestionProps) {
  return (
    <Modal title={title} onClose={onNo}>
      {children}
      <div className="buttons">
        {/* biome-ignore lint/a11y/noAutofocus: a dialog moves the focus into itself; this is the safe choice. */}
        <button type="button" autoFocus onClick={onNo}>
          Cancel
        </button>
        <button type="button" className="danger" onClick={onYes}>
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
  useEffect(() => {
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
