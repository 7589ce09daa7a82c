// The frame around every page: navigation, the namespace, who is logged in; the state of the connection.
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { useConnection } from './api/connection.ts'
import { choose, useNamespaces } from './api/namespaces.ts'
import { logOut, useSession } from './api/session.ts'
import { Mark } from './login.tsx'
import { administrators, everybody, type Place } from './nav.ts'
import { openFinder, Shortcuts } from './shortcuts.tsx'
import { texts } from './texts.ts'
import { chooseTheme, themes, useTheme } from './theme.ts'
import { SelectField } from './ui/field.tsx'
import { Icon } from './ui/icons.tsx'
import { Menu } from './ui/menu.tsx'

const { nav } = texts

export function Frame({ children }: { readonly children: ReactNode }) {
  const [isOpen, setOpen] = useState(false)
  const [path] = useLocation()
  const main = useRef<HTMLElement>(null)
  const isLost = useConnection() === 'lost'
  // biome-ignore lint/correctness/useExhaustiveDependencies: the menu closes, and the page begins at its top, when the page changes
  useEffect(() => {
    setOpen(false)
    scrollTo(0, 0)
  }, [path])
  return (
    <>
      <button type="button" className="skip" onClick={() => main.current?.focus()}>
        {nav.skip}
      </button>
      <div className="frame">
        <header className="top">
          <Link className="brand" href="/">
            <Mark />
            {texts.product}
          </Link>
          <button
            type="button"
            className="button button-icon"
            data-kind="quiet"
            aria-label={nav.menu}
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
          >
            <Icon name={isOpen ? 'close' : 'menu'} />
          </button>
        </header>
        <Side isOpen={isOpen} path={path} />
        <main id="main" ref={main} tabIndex={-1}>
          {isLost && (
            <div className="banner" role="status">
              {texts.connection.lost}
            </div>
          )}
          {children}
        </main>
      </div>
      <Shortcuts />
    </>
  )
}

function Side({ isOpen, path }: { readonly isOpen: boolean; readonly path: string }) {
  const { person } = useSession()
  return (
    <aside className="side" data-open={isOpen}>
      <Link className="brand" href="/">
        <Mark />
        {texts.product}
      </Link>
      <button type="button" className="button finder" onClick={openFinder}>
        {texts.finder.open}
        <kbd>{texts.finder.keys}</kbd>
      </button>
      <NamespaceChoice />
      <nav className="nav" aria-label={nav.label}>
        <Links links={everybody} path={path} />
        {person?.admin && (
          <>
            <span className="nav-title">{nav.administration}</span>
            <Links links={administrators} path={path} />
          </>
        )}
      </nav>
      <Foot />
    </aside>
  )
}

interface LinksProps {
  readonly links: readonly Place[]
  readonly path: string
}

const isBelow = (path: string, target: string): boolean =>
  target === '/' ? path === '/' : path === target || path.startsWith(`${target}/`)

const Links = ({ links, path }: LinksProps) => (
  <>
    {links.map(([target, label]) => (
      <Link key={target} href={target} aria-current={isBelow(path, target) ? 'page' : undefined}>
        {label}
      </Link>
    ))}
  </>
)

function NamespaceChoice() {
  const { all, chosen } = useNamespaces()
  return (
    <SelectField
      label={nav.namespace}
      value={chosen}
      onValue={choose}
      labels={{ '': nav.allNamespaces }}
      choices={all}
    />
  )
}

function Foot() {
  const { person } = useSession()
  const theme = useTheme()
  const items = [
    { label: nav.logOut, onChoose: () => void logOut(false) },
    { label: nav.logOutEverywhere, onChoose: () => void logOut(true) },
  ]
  return (
    <div className="side-foot">
      <SelectField
        label={nav.theme}
        value={theme}
        onValue={(value) => chooseTheme(themes.find((each) => each === value) ?? 'system')}
        labels={nav.themes}
      />
      <div className="account">
        <div className="person" title={person?.name}>
          <div className="person">{person?.name}</div>
          {person?.admin && <div className="person small muted">{nav.administrator}</div>}
        </div>
        <Menu label={nav.account} items={items} />
      </div>
    </div>
  )
}
