// The design on one page, to look at when it is changed: tokens as the browser has them, and every part that pages are made of.
import { type ReactNode, useState } from 'react'
import { texts } from '../../texts.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog, openDialog } from '../../ui/dialog.tsx'
import { AreaField, CheckField, SearchField, SelectField, TextField } from '../../ui/field.tsx'
import { Icon, iconNames } from '../../ui/icons.tsx'
import { Menu } from '../../ui/menu.tsx'
import { Card, Empty, Loading, Note, Page, Tags } from '../../ui/page.tsx'
import { Bar, State, type Tone } from '../../ui/state.tsx'
import { designTexts as words } from './texts.ts'
import '../../styles/design.css'

/** All tokens of the style sheets, by their names. */
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
    <Page title={words.title}>
      <p className="muted">{words.text}</p>
      <Card title={words.colours}>
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
        <Card title={words.type}>
          {names
            .filter((name) => name.startsWith('--type-'))
            .map((name) => (
              <p key={name} style={{ fontSize: `var(${name})` }}>
                {words.sample} <code className="muted small">{`${name} ${tokenValue(name)}`}</code>
              </p>
            ))}
        </Card>
        <Card title={words.spacing}>
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
      <Card title={words.icons}>
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
        <Card title={words.buttons}>
          {([undefined, 'small'] as const).map((size) => (
            <div key={size ?? ''} className="line">
              {words.kinds.map((kind) => (
                <Button key={kind ?? ''} kind={kind} size={size}>
                  {words.kindNames[kind ?? 'plain']}
                </Button>
              ))}
              <Button kind="primary" size={size} reason={words.reason}>
                {words.disabled}
              </Button>
            </div>
          ))}
        </Card>
        <Card title={words.states}>
          <div className="line">
            {Object.entries(words.tones).map(([tone, word]) => (
              <State key={tone} tone={tone as Tone} word={word} />
            ))}
            <Tags tags={words.tags} />
          </div>
          <Bar role="meter" label={words.meter} text={words.meterText} value={14} of={24} />
          <Bar role="meter" label={words.meter} value={23} of={24} />
        </Card>
        <Card title={words.fields}>
          <Fields />
        </Card>
        <Card title={words.menus}>
          <Menus />
        </Card>
        <Card title={words.notes}>
          {Object.entries(words.noteTones).map(([tone, text]) => (
            <Note key={tone} tone={tone === 'plain' ? undefined : (tone as 'good' | 'warn' | 'bad')}>
              {text}
            </Note>
          ))}
        </Card>
        <Stack>
          <Empty title={words.emptyTitle} text={words.emptyText} command={words.example} />
          <Loading />
        </Stack>
      </div>
    </Page>
  )
}

const Stack = ({ children }: { readonly children: ReactNode }) => <div className="stack">{children}</div>

function Fields() {
  const [name, setName] = useState('')
  const [image, setImage] = useState('')
  const [node, setNode] = useState('')
  const [search, setSearch] = useState('')
  const [isOn, setOn] = useState(true)
  return (
    <>
      <SearchField placeholder={words.sample} value={search} onValue={setSearch} />
      <div className="fields">
        <TextField label={words.name} hint={words.nameHint} value={name} onValue={setName} />
        <TextField label={words.image} value={image} onValue={setImage} offers={words.images} />
        <SelectField label={words.node} value={node} onValue={setNode} labels={words.nodes} />
        <TextField label={words.cores} fault={words.coresFault} value="x" onValue={() => undefined} />
      </div>
      <AreaField label={words.userdata} value={name} onValue={setName} />
      <CheckField label={words.check} value={isOn} onValue={setOn} />
    </>
  )
}

function Menus() {
  const items = [
    ...words.menuItems.map((label, index) => ({ label, reason: index === 0 ? words.reason : undefined })),
    { label: texts.common.delete, isDanger: true },
  ]
  const open = (): void =>
    openDialog((onClose) => (
      <Dialog title={words.dialogTitle} onClose={onClose}>
        <p className="muted">{words.dialogText}</p>
        <div className="dialog-foot">
          <Button onClick={onClose}>{texts.common.cancel}</Button>
          <Button kind="danger" onClick={onClose}>
            {texts.common.delete}
          </Button>
        </div>
      </Dialog>
    ))
  return (
    <div className="line">
      <Menu label={texts.common.actions} text={texts.common.actions} items={items} />
      <Menu label={texts.common.actionsOf(words.name)} items={items} size="small" />
      <Button onClick={open}>{words.openDialog}</Button>
    </div>
  )
}
