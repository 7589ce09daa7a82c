// All design tokens and components on one page, to check them when the design changes.
import { useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { Dialog, openDialog } from '../../ui/dialog.tsx'
import { AreaField, CheckField, SearchField, SelectField, TextField } from '../../ui/field.tsx'
import { Icon, iconNames } from '../../ui/icons.tsx'
import { Menu } from '../../ui/menu.tsx'
import { Card, Empty, Loading, Note, Page, Tags } from '../../ui/page.tsx'
import { Bar, State, type Tone } from '../../ui/state.tsx'
import '../../styles/design.css'

const nodes = { '': 'Any node', 'mac-mini-1': 'mac-mini-1', 'mac-mini-2': 'mac-mini-2', 'mac-studio-1': 'mac-studio-1' }

const images = ['sequoia-base', 'sequoia-xcode-16.2', 'sonoma-xcode-15.4', 'ventura-intel']

const tones = { good: 'Running', busy: 'Starting', warn: 'Pending', bad: 'Failed', idle: 'Stopped' }

const kinds = { Plain: undefined, Primary: 'primary', Danger: 'danger', Quiet: 'quiet' } as const

/** The custom properties declared on :root. */
const tokens = (): string[] => [
  ...new Set(
    [...document.styleSheets]
      .flatMap((sheet) => [...sheet.cssRules])
      .filter((rule) => rule instanceof CSSStyleRule && rule.selectorText === ':root')
      .flatMap((rule) => [...(rule as CSSStyleRule).style].filter((name) => name.startsWith('--'))),
  ),
]

const tokenValue = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

export function Design() {
  const [names] = useState(tokens)
  const colours = names.filter((name) => CSS.supports('color', tokenValue(name)))
  return (
    <Page title="Design">
      <p className="muted">All design tokens and components in the current theme. Only available on a local server.</p>
      <Card title="Colors">
        <ul className="swatches">
          {colours.map((name) => (
            <li key={name}>
              <span className="swatch" style={{ background: `var(${name})` }} />
              <code>{name}</code>
            </li>
          ))}
        </ul>
      </Card>
      <div className="grid-2">
        <Card title="Type">
          {names
            .filter((name) => name.startsWith('--type-'))
            .map((name) => (
              <p key={name} style={{ fontSize: `var(${name})` }}>
                Node mac-mini-1 has 10.6 GiB free <code className="muted small">{`${name} ${tokenValue(name)}`}</code>
              </p>
            ))}
        </Card>
        <Card title="Spacing">
          {names
            .filter((name) => /^--s\d$/.test(name))
            .map((name) => (
              <p key={name} className="line">
                <span className="swatch" style={{ width: `var(${name})`, background: 'var(--fill-used)' }} />
                <code className="muted small">{`${name} ${tokenValue(name)}`}</code>
              </p>
            ))}
        </Card>
      </div>
      <Card title="Icons">
        <ul className="swatches">
          {iconNames.map((name) => (
            <li key={name}>
              <Icon name={name} />
              <code>{name}</code>
            </li>
          ))}
        </ul>
      </Card>
      <div className="grid-2">
        <Card title="Buttons">
          {([undefined, 'small'] as const).map((size) => (
            <div key={size ?? ''} className="line">
              {Object.entries(kinds).map(([name, kind]) => (
                <Button key={name} kind={kind} size={size}>
                  {name}
                </Button>
              ))}
              <Button kind="primary" size={size} reason="VM demo is suspended; only a stopped VM can be started">
                Not possible now
              </Button>
            </div>
          ))}
        </Card>
        <Card title="States">
          <div className="line">
            {Object.entries(tones).map(([tone, word]) => (
              <State key={tone} tone={tone as Tone} word={word} />
            ))}
            <Tags tags={['team=ios', 'arm64']} />
          </div>
          <Bar role="meter" label="Cores used" text="14 of 24 used" value={14} of={24} />
          <Bar role="meter" label="Cores used" value={23} of={24} />
        </Card>
        <Card title="Fields">
          <Fields />
        </Card>
        <Card title="Menus and dialogs">
          <Menus />
        </Card>
        <Card title="Notes">
          <Note>A note</Note>
          <Note tone="good">It will run on node mac-mini-1</Note>
          <Note tone="warn">No node fits 12 cores</Note>
          <Note tone="bad">Image tiny not found</Note>
        </Card>
        <div className="stack">
          <Empty
            title="No VMs yet"
            text="Deploy a VM here or from a terminal:"
            command="svc3 vm deploy demo --image tiny-arm64"
          />
          <Loading />
        </div>
      </div>
    </Page>
  )
}

function Fields() {
  const [name, setName] = useState('')
  const [image, setImage] = useState('')
  const [node, setNode] = useState('')
  const [search, setSearch] = useState('')
  const [isOn, setOn] = useState(true)
  return (
    <>
      <SearchField placeholder="Node mac-mini-1 has 10.6 GiB free" value={search} onValue={setSearch} />
      <div className="fields">
        <TextField label="Name" hint="Optional; generated if empty" value={name} onValue={setName} />
        <TextField label="Image" value={image} onValue={setImage} suggestions={images} />
        <SelectField label="Node" value={node} onValue={setNode} labels={nodes} />
        <TextField label="Cores" fault="Cores must be a whole number" value="x" onValue={() => undefined} />
      </div>
      <AreaField label="User data" value={name} onValue={setName} />
      <CheckField label="Require the tag" value={isOn} onValue={setOn} />
    </>
  )
}

function Menus() {
  const items = [
    { label: 'Start', reason: 'VM demo is suspended; only a stopped VM can be started' },
    { label: 'Stop' },
    { label: 'Save as image' },
    { label: 'Delete', isDanger: true },
  ]
  const open = (): void =>
    openDialog((onClose) => (
      <Dialog title="Delete VM demo?" onClose={onClose}>
        <p className="muted">Its disk is deleted with it.</p>
        <div className="dialog-foot">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="danger" onClick={onClose}>
            Delete
          </Button>
        </div>
      </Dialog>
    ))
  return (
    <div className="line">
      <Menu label="Actions" text="Actions" items={items} />
      <Menu label={`Actions for Name`} items={items} size="small" />
      <Button onClick={open}>Open a dialog</Button>
    </div>
  )
}
