// "Show as command" and "Show as request" for every action and list.
import { useState } from 'react'
import type { Operation } from '../../src/api/operation.ts'
import { serviceUrl } from '../api/urls.ts'
import { commandLine, hasCommand, type Input, withoutOption } from '../show-as/commands.ts'
import { curlLine } from '../show-as/requests.ts'
import { Button } from './button.tsx'
import { Code } from './copy.tsx'
import { Dialog } from './dialog.tsx'
import { Icon } from './icons.tsx'

interface Props {
  readonly operation: Operation
  readonly input: Input
}

const titles = { command: 'Show as command', request: 'Show as request' }
type Kind = keyof typeof titles

export function ShowAs({ operation, input }: Props) {
  const [open, setOpen] = useState<Kind>()
  const kinds: readonly Kind[] = hasCommand(operation) ? ['command', 'request'] : ['request']
  return (
    <div className="show-as">
      <div className="show-as-tabs">
        {kinds.map((kind) => (
          <Button
            key={kind}
            kind="quiet"
            size="small"
            aria-expanded={open === kind}
            onClick={() => setOpen(open === kind ? undefined : kind)}
          >
            {titles[kind]}
          </Button>
        ))}
      </div>
      {open && <Line kind={open} operation={operation} input={input} />}
    </div>
  )
}

const Line = ({ kind, operation, input }: Props & { readonly kind: Kind }) => (
  <Code
    text={kind === 'command' ? commandLine(operation, input) : curlLine(operation, input, serviceUrl)}
    what={titles[kind]}
  />
)

/** The button in the header of a page. */
export function ShowAsButton({ operation, input }: Props) {
  const [isOpen, setOpen] = useState(false)
  const missing = withoutOption(operation, input)
  return (
    <>
      <Button kind="quiet" className="show-as-page" aria-label="Show as command" onClick={() => setOpen(true)}>
        <Icon name="code" />
        <span>Show as command</span>
      </Button>
      {isOpen && (
        <Dialog title={operation.summary} onClose={() => setOpen(false)}>
          {hasCommand(operation) && (
            <div className="stack-tight">
              <h3>Show as command</h3>
              <Line kind="command" operation={operation} input={input} />
              {missing.length > 0 && (
                <p className="muted small">{`The command has no option for these filters: ${missing.join(', ')}`}</p>
              )}
            </div>
          )}
          <div className="stack-tight">
            <h3>Show as request</h3>
            <Line kind="request" operation={operation} input={input} />
            {input.isEverywhere && <p className="muted small">A request lists one namespace. Repeat it for each.</p>}
          </div>
          <div className="dialog-foot">
            <Button onClick={() => setOpen(false)}>Close</Button>
          </div>
        </Dialog>
      )}
    </>
  )
}
