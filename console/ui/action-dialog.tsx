// The dialog of every action: its form, its command line, and its error.
import { type FormEvent, type ReactNode, useState } from 'react'
import type { Operation, ResponseOf } from '../../src/api/operation.ts'
import type { RawInput } from '../../src/client/client.ts'
import { problemOf, useAction } from '../api/calls.ts'
import { Button } from './button.tsx'
import { Code } from './copy.tsx'
import { Dialog } from './dialog.tsx'
import { Faults, type Form, TextField, type Typed, useForm, type Values } from './field.tsx'
import type { MenuItem } from './menu.tsx'
import { ErrorNote } from './page.tsx'
import { ShowAs } from './show-as.tsx'
import { showToast } from './toasts.tsx'

/** The texts of actions on one kind of object: `Start VM web`, and when that is done `VM web started`. */
export const wordsFor =
  (noun: string) =>
  (label: string, done: string, text?: string): ActionWords => ({
    label,
    title: (name) => `${label} ${noun} ${name}`,
    text,
    done: (name) => `${sentence(noun)} ${name} ${done}`,
  })

export const deletionOf = (noun: string, text?: string): ActionWords => ({
  label: 'Delete',
  title: (name) => `Delete ${noun} ${name}?`,
  text,
  done: (name) => `${sentence(noun)} ${name} deleted`,
})

/** No title: the label already names what is created. */
export const creationOf = (noun: string): ActionWords => ({
  label: `Create ${noun}`,
  done: (name) => `${sentence(noun)} ${name} created`,
})

const sentence = (noun: string): string => noun.charAt(0).toUpperCase() + noun.slice(1)

export const typeToConfirm = (name: string) => `Type ${name} to confirm`

export interface ActionWords {
  readonly label: string
  /** A question if something is lost. Defaults to the label. */
  readonly title?: (name: string) => string
  readonly text?: string | undefined
  /** Without it, the page itself shows the result. */
  readonly done?: (name: string) => string
}

interface Props<O extends Operation> {
  readonly words: ActionWords
  /** The object acted on. */
  readonly name?: string
  /** Replaces `words.text`. */
  readonly text?: string | undefined
  /** The object created, if another than `name`; passed to `words.done`. */
  readonly createdName?: string
  /** The page that the success message links to. */
  readonly path?: string
  readonly operation: O
  readonly input: RawInput
  readonly isDanger?: boolean
  /** The user must type this to enable the button. */
  readonly confirm?: string | undefined
  /** Why the form cannot be submitted yet. */
  readonly reason?: string | undefined
  /** An error is hidden as soon as this value changes, because it no longer applies. */
  readonly about?: string | undefined
  readonly size?: 'large'
  readonly onClose: () => void
  /** Called in place of closing the dialog. */
  readonly onDone?: ((answer: ResponseOf<O>) => void) | undefined
  readonly children?: ReactNode
}

export function ActionDialog<O extends Operation>(props: Props<O>) {
  const { words, name = '', operation, input, isDanger, confirm, reason, about, size, onClose, children } = props
  const { text = words.text, createdName = name, path, onDone = onClose } = props
  const [typed, setTyped] = useState('')
  const [submittedAbout, setSubmittedAbout] = useState(about)
  const action = useAction(operation, (answer) => {
    if (words.done) showToast(words.done(createdName), path)
    onDone(answer)
  })
  const isUnconfirmed = confirm !== undefined && typed !== confirm
  const blocked = isUnconfirmed ? typeToConfirm(confirm) : reason
  const error = submittedAbout === about ? action.error : undefined
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (blocked !== undefined || action.isBusy) return
    setSubmittedAbout(about)
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
        <ShowAs operation={operation} input={input} />
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

interface ItemProps<O extends Operation> extends Pick<Props<O>, 'words' | 'operation' | 'input' | 'reason'> {
  readonly name: string
}

/** A menu item for an action without fields. */
export const confirmItem = <O extends Operation>({ reason, ...props }: ItemProps<O>): MenuItem => ({
  label: props.words.label,
  reason,
  dialog: (onClose) => <ActionDialog {...props} onClose={onClose} />,
})

type RemoveProps<O extends Operation> = Omit<ItemProps<O>, 'reason'> & {
  /** Called after the object was deleted, for example to leave its page. */
  readonly onDone?: (() => void) | undefined
  readonly children?: ReactNode
}

/** For actions that cannot be undone: the user must type the name. */
export function RemoveDialog<O extends Operation>(props: RemoveProps<O> & { readonly onClose: () => void }) {
  const { name, onClose, onDone, ...rest } = props
  const close = (): void => {
    onClose()
    onDone?.()
  }
  return <ActionDialog {...rest} name={name} confirm={name} isDanger onClose={onClose} onDone={close} />
}

export const removeItem = <O extends Operation>({
  reason,
  ...props
}: RemoveProps<O> & Pick<Props<O>, 'reason'>): MenuItem => ({
  label: props.words.label,
  reason,
  isDanger: true,
  dialog: (onClose) => <RemoveDialog {...props} onClose={onClose} />,
})

interface FormProps<O extends Operation, T extends Values>
  extends Pick<Props<O>, 'words' | 'name' | 'text' | 'operation' | 'size'> {
  readonly initial: T
  readonly input: (values: Typed<T>) => RawInput
  /** The labels of fields that must not be empty. */
  readonly needs?: { readonly [K in keyof T]?: string }
  /** Another reason why the values cannot be submitted. */
  readonly faultOf?: (values: Typed<T>) => string | undefined
  readonly createdName?: (values: Typed<T>) => string
  /** The page that the success message links to. */
  readonly pathOf?: (values: Typed<T>) => string
  /** Called after the dialog was closed. */
  readonly onDone?: (answer: ResponseOf<O>) => void
  readonly fields: (form: Form<T>) => ReactNode
}

export function FormDialog<O extends Operation, T extends Values>(
  props: FormProps<O, T> & { readonly onClose: () => void },
) {
  const { initial, input, needs = {}, faultOf, createdName, pathOf, fields, onDone, ...rest } = props
  const form = useForm(initial, `${rest.words.label} ${rest.name ?? ''}`)
  const { values } = form
  const missing = Object.entries(needs).find(([name]) => values[name] === '')?.[1]
  return (
    <ActionDialog
      {...rest}
      {...(createdName && { createdName: createdName(values) })}
      {...(pathOf && { path: pathOf(values) })}
      input={input(values)}
      reason={missing === undefined ? faultOf?.(values) : `${missing} is required`}
      onDone={(answer) => {
        rest.onClose()
        onDone?.(answer)
      }}
    >
      {fields(form)}
    </ActionDialog>
  )
}

/** A menu item for an action with fields. */
export const formItem = <O extends Operation, T extends Values>({
  reason,
  ...props
}: FormProps<O, T> & Pick<Props<O>, 'reason'>): MenuItem => ({
  label: props.words.label,
  reason,
  dialog: (onClose) => <FormDialog {...props} onClose={onClose} />,
})

interface SecretProps {
  readonly title: string
  readonly text: string
  readonly secret: string
  readonly what: string
  readonly onClose: () => void
  /** The expiry of the secret. */
  readonly children: ReactNode
}

/** Shows a secret that the server returns only once. */
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
