// Every action of the console: what it does, its fields, the same as a command, and what went wrong if it did.
import { type FormEvent, type ReactNode, useState } from 'react'
import type { Operation, ResponseOf } from '../../src/api/operation.ts'
import type { RawInput } from '../../src/client/client.ts'
import { problemOf, useAction } from '../api/calls.ts'
import { Button } from './button.tsx'
import { Code } from './copy.tsx'
import { Dialog } from './dialog.tsx'
import { Faults, TextField } from './field.tsx'
import type { MenuItem } from './menu.tsx'
import { ErrorNote } from './page.tsx'
import { Teach } from './teach.tsx'
import { say } from './toasts.tsx'

export const typeToConfirm = (name: string) => `Type ${name} to confirm`

/** What an action says: on its button, in its dialog, and when it has succeeded. */
export interface ActionWords {
  readonly label: string
  /** The heading of the dialog: a question if something is lost. Defaults to the label. */
  readonly title?: (name: string) => string
  readonly text?: string
  /** Without it, the page itself shows what came of the action. */
  readonly done?: (name: string) => string
}

interface Props<O extends Operation> {
  readonly words: ActionWords
  /** Of what it is done to. */
  readonly name?: string
  /** In place of the text of the words. */
  readonly text?: string | undefined
  /** Of what it creates, if that is something else. */
  readonly made?: string
  /** The page that shows what becomes of it. */
  readonly path?: string
  readonly operation: O
  readonly input: RawInput
  readonly isDanger?: boolean
  /** Destructive: the name has to be typed. */
  readonly confirm?: string | undefined
  /** Why what was typed cannot be sent yet. */
  readonly reason?: string | undefined
  /** What a refusal may have been about: as soon as that is something else, the refusal is of no use. */
  readonly about?: string | undefined
  readonly size?: 'large'
  readonly onClose: () => void
  /** In place of closing it. */
  readonly onDone?: ((answer: ResponseOf<O>) => void) | undefined
  readonly children?: ReactNode
}

export function ActionDialog<O extends Operation>(props: Props<O>) {
  const { words, name = '', operation, input, isDanger, confirm, reason, about, size, onClose, children } = props
  const { text = words.text, made = name, path, onDone = onClose } = props
  const [typed, setTyped] = useState('')
  const [asked, setAsked] = useState(about)
  const action = useAction(operation, (answer) => {
    if (words.done) say(words.done(made), path)
    onDone(answer)
  })
  const isUnconfirmed = confirm !== undefined && typed !== confirm
  const blocked = isUnconfirmed ? typeToConfirm(confirm) : reason
  const error = asked === about ? action.error : undefined
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (blocked !== undefined || action.isBusy) return
    setAsked(about)
    action.run(input)
  }
  return (
    <Dialog title={words.title?.(name) ?? words.label} {...(size && { size })} onClose={onClose}>
      <form className="stack" onSubmit={submit} noValidate>
        {text !== undefined && <p className="muted">{text}</p>}
        <Faults value={problemOf(error).fields}>{children}</Faults>
        {confirm !== undefined && (
          <TextField label={typeToConfirm(confirm)} value={typed} onValue={setTyped} autoFocus />
        )}
        <ErrorNote error={error} />
        <Teach operation={operation} input={input} />
        <div className="dialog-foot">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind={isDanger ? 'danger' : 'primary'} isBusy={action.isBusy} reason={blocked}>
            {words.label}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

interface RemoveProps<O extends Operation> extends Pick<Props<O>, 'words' | 'operation' | 'input' | 'children'> {
  readonly name: string
  /** After it is gone: the page that showed it has nothing to show. */
  readonly onDone?: (() => void) | undefined
}

/** What cannot be taken back: the name has to be typed. */
export function RemoveDialog<O extends Operation>(props: RemoveProps<O> & { readonly onClose: () => void }) {
  const { name, onClose, onDone, ...rest } = props
  const close = (): void => {
    onClose()
    onDone?.()
  }
  return <ActionDialog {...rest} name={name} confirm={name} isDanger onClose={onClose} onDone={close} />
}

/** Removing, as an item of a menu. */
export const removal = <O extends Operation>(props: RemoveProps<O>, reason?: string): MenuItem => ({
  label: props.words.label,
  reason,
  isDanger: true,
  dialog: (onClose) => <RemoveDialog {...props} onClose={onClose} />,
})

interface ConfirmProps<O extends Operation> extends Pick<Props<O>, 'words' | 'operation' | 'input' | 'reason'> {
  readonly name: string
}

/** An action without fields, as an item of a menu. */
export const confirmed = <O extends Operation>({ reason, ...props }: ConfirmProps<O>): MenuItem => ({
  label: props.words.label,
  reason,
  dialog: (onClose) => <ActionDialog {...props} onClose={onClose} />,
})

interface SecretProps {
  readonly title: string
  readonly text: string
  readonly secret: string
  readonly what: string
  readonly onClose: () => void
  /** How long it is good for. */
  readonly children: ReactNode
}

/** Shows once what an action made. */
export const SecretDialog = ({ title, text, secret, what, onClose, children }: SecretProps) => (
  <Dialog title={title} onClose={onClose}>
    <p>{text}</p>
    <Code text={secret} what={what} />
    <p className="muted">{children}</p>
    <div className="dialog-foot">
      <Button kind="primary" onClick={onClose}>
        Done
      </Button>
    </div>
  </Dialog>
)
