// Every action of the console: what it does, its fields, the same as a command, and what went wrong if it did.
import { type FormEvent, type ReactNode, useState } from 'react'
import type { Operation, ResponseOf } from '../../src/api/operation.ts'
import type { RawInput } from '../../src/client/client.ts'
import { tellError, useAct } from '../api/act.ts'
import { texts } from '../texts.ts'
import { Button } from './button.tsx'
import { Dialog } from './dialog.tsx'
import { TextField } from './field.tsx'
import { ErrorNote } from './notes.tsx'
import { Teach } from './teach.tsx'
import { say } from './toasts.tsx'

interface Props<O extends Operation> {
  readonly title: string
  readonly text?: string | undefined
  readonly label: string
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
  readonly onDone?: (answer: ResponseOf<O>) => void
  /** What is said when it is done; nothing when `onDone` shows it. */
  readonly said?: string | undefined
  /** The page that shows what becomes of it. */
  readonly saidOf?: string | undefined
  /** The fields, told what the service says about each. */
  readonly children?: ReactNode | ((faults: ReadonlyMap<string, string>) => ReactNode)
}

export function ActionDialog<O extends Operation>(props: Props<O>) {
  const { title, text, label, operation, input, isDanger, confirm, reason, size, onClose, said, saidOf, children } =
    props
  const [typed, setTyped] = useState('')
  const [asked, setAsked] = useState(props.about)
  const act = useAct(operation, (answer) => {
    if (said !== undefined) say(said, saidOf)
    if (props.onDone) props.onDone(answer)
    else onClose()
  })
  const isUnconfirmed = confirm !== undefined && typed !== confirm
  const blocked = isUnconfirmed ? texts.common.typeName(confirm) : reason
  const error = asked === props.about ? act.error : undefined
  const faults = error ? tellError(error).fields : new Map<string, string>()
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (blocked !== undefined || act.isBusy) return
    setAsked(props.about)
    void act.run(input)
  }
  return (
    <Dialog title={title} {...(size && { size })} onClose={onClose}>
      <form className="stack" onSubmit={submit} noValidate>
        {text !== undefined && <p className="muted">{text}</p>}
        {typeof children === 'function' ? children(faults) : children}
        {confirm !== undefined && (
          <TextField label={texts.common.typeName(confirm)} value={typed} onValue={setTyped} autoFocus />
        )}
        <ErrorNote error={error} />
        <Teach operation={operation} input={input} />
        <div className="dialog-foot">
          <Button onClick={onClose}>{texts.common.cancel}</Button>
          <Button type="submit" kind={isDanger ? 'danger' : 'primary'} isBusy={act.isBusy} reason={blocked}>
            {label}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

interface RemoveProps<O extends Operation> extends Pick<Props<O>, 'text' | 'operation' | 'input' | 'onClose'> {
  readonly name: string
  readonly label?: string
  /** After it is gone: the page that showed it has nothing to show. */
  readonly onDone?: (() => void) | undefined
  readonly children?: ReactNode
}

/** What cannot be taken back: the name has to be typed. */
export function RemoveDialog<O extends Operation>(props: RemoveProps<O>) {
  const { name, label = texts.actions.delete.label, onClose, onDone, ...rest } = props
  return (
    <ActionDialog
      {...rest}
      title={`${label}: ${name}`}
      label={label}
      isDanger
      confirm={name}
      said={texts.actions.done(label, name)}
      onClose={onClose}
      onDone={() => {
        onClose()
        onDone?.()
      }}
    />
  )
}
