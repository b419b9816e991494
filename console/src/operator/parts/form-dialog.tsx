import type { FormEvent, ReactNode } from 'react';
import { Failure } from '../../parts/failure.tsx';
import { Press } from '../../parts/press.tsx';
import { Modal } from '../../parts/question.tsx';
import { Terminal, type TerminalCall } from '../../parts/terminal.tsx';

interface FormDialogProps {
  readonly title: string;
  /** The label of the submit button. */
  readonly action: string;
  /** Whether the action deletes something. */
  readonly harmful?: boolean;
  /** The title of the error message, such as "The key could not be issued". */
  readonly failed: string;
  readonly sending: { readonly isPending: boolean; readonly error: unknown };
  readonly call: TerminalCall;
  readonly onSubmit: () => void;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** Shows a form in a dialog, together with the equivalent terminal line. */
export function FormDialog(props: FormDialogProps) {
  const { title, action, harmful = false, failed, sending, call, onSubmit, onClose, children } = props;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onSubmit();
  };
  return (
    <Modal title={title} onClose={onClose}>
      <form onSubmit={submit}>
        {children}
        <div className="dialog-foot">
          {sending.error !== null && <Failure error={sending.error} what={failed} />}
          <div className="buttons">
            <button type="button" onClick={onClose}>
              Cancel
            </button>
            <Press type="submit" className={harmful ? 'danger' : 'primary'} blocked={sending.isPending}>
              {sending.isPending ? 'Sending…' : action}
            </Press>
          </div>
        </div>
      </form>
      <Terminal calls={[call]} />
    </Modal>
  );
}
