// The frame around every page: navigation, the namespace, who is logged in; the state of the connection.
import { Fragment, type ReactNode, useEffect, useRef, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { useLostSince } from './api/connection.ts'
import { choose, useNamespaces } from './api/namespaces.ts'
import { logOut, useSession } from './api/session.ts'
import { type Place, sectionsFor } from './nav.ts'
import { openFinder, Shortcuts } from './shortcuts.tsx'
import { texts } from './texts.ts'
import { chooseTheme, themes, useTheme } from './theme.ts'
import { SelectField } from './ui/field.tsx'
import { Icon, Mark } from './ui/icons.tsx'
import { Menu } from './ui/menu.tsx'
import { Time } from './ui/time.tsx'

const { nav } = texts

export function Frame({ children }: { readonly children: ReactNode }) {
  const [isOpen, setOpen] = useState(false)
  const [path] = useLocation()
  const main = useRef<HTMLElement>(null)
  const lostSince = useLostSince()
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
        <main id="main" ref={main} tabIndex={-1} data-stale={lostSince !== undefined || undefined}>
          {lostSince !== undefined && <Lost since={lostSince} />}
          {children}
        </main>
      </div>
      <Shortcuts />
    </>
  )
}

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' })

/** Said once: how long ago that was goes on counting, and is only shown. */
const Lost = ({ since }: { readonly since: string }) => (
  <div className="banner">
    <Icon name="offline" />
    <span role="status">{texts.connection.lost(clock.format(new Date(since)))}</span>
    <span aria-hidden="true">
      <Time at={since} />
    </span>
  </div>
)

function Side({ isOpen, path }: { readonly isOpen: boolean; readonly path: string }) {
  const { person } = useSession()
  return (
    <aside className="side" data-open={isOpen}>
      <Link className="brand" href="/">
        <Mark />
        {texts.product}
      </Link>
      <button type="button" className="button finder" onClick={openFinder}>
        <Icon name="search" />
        <span>{texts.finder.open}</span>
        <kbd>{texts.finder.keys}</kbd>
      </button>
      <NamespaceChoice />
      <nav className="nav" aria-label={nav.label}>
        {sectionsFor(person?.admin === true).map(({ title, places }) => (
          <Fragment key={title ?? ''}>
            {title !== undefined && <span className="nav-title">{title}</span>}
            <Links links={places} path={path} />
          </Fragment>
        ))}
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
    {links.map(([target, label, icon]) => (
      <Link key={target} href={target} aria-current={isBelow(path, target) ? 'page' : undefined}>
        {icon && <Icon name={icon} />}
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
  const items = [
    { label: nav.logOut, onChoose: () => void logOut(false) },
    { label: nav.logOutEverywhere, onChoose: () => void logOut(true) },
  ]
  return (
    <div className="side-foot">
      <ThemeChoice />
      <div className="account">
        <span className="initial" aria-hidden="true">
          {person?.name.slice(0, 1)}
        </span>
        <div className="person" title={person?.name}>
          <div className="person">{person?.name}</div>
          {person?.admin && <div className="person small muted">{nav.administrator}</div>}
        </div>
        <Menu label={nav.account} items={items} />
      </div>
    </div>
  )
}

function ThemeChoice() {
  const chosen = useTheme()
  return (
    <fieldset className="segments" aria-label={nav.theme}>
      {themes.map((theme) => (
        <label key={theme} title={nav.themes[theme]}>
          <input
            type="radio"
            name="theme"
            aria-label={nav.themes[theme]}
            checked={theme === chosen}
            onChange={() => chooseTheme(theme)}
          />
          <Icon name={theme} />
        </label>
      ))}
    </fieldset>
  )
}
