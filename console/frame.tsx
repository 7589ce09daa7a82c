// The layout around every page: navigation, namespace, user, and the connection banner.
import { Fragment, type ReactNode, useEffect, useRef, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { useLostSince } from './api/connection.ts'
import { selectNamespace, useNamespaces } from './api/namespaces.ts'
import { logOut, useSession } from './api/session.ts'
import { type NavLink, sectionsFor } from './nav.ts'
import { openFinder, Shortcuts } from './shortcuts.tsx'
import { chooseTheme, themes, useTheme } from './theme.ts'
import { SelectField } from './ui/field.tsx'
import { Icon, Logo } from './ui/icons.tsx'
import { Menu } from './ui/menu.tsx'
import { Time } from './ui/time.tsx'

const themeNames = { system: 'System', light: 'Light', dark: 'Dark' }

export function Frame({ children }: { readonly children: ReactNode }) {
  const [isOpen, setOpen] = useState(false)
  const [path] = useLocation()
  const main = useRef<HTMLElement>(null)
  const lostSince = useLostSince()
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs when the page changes
  useEffect(() => {
    setOpen(false)
    scrollTo(0, 0)
  }, [path])
  return (
    <>
      <button type="button" className="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <div className="frame">
        <header className="top">
          <Link className="brand" href="/">
            <Logo />
            svc3
          </Link>
          <button
            type="button"
            className="button button-icon"
            data-kind="quiet"
            aria-label="Menu"
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
          >
            <Icon name={isOpen ? 'close' : 'menu'} />
          </button>
        </header>
        <Sidebar isOpen={isOpen} path={path} />
        <main id="main" ref={main} tabIndex={-1} data-stale={lostSince !== undefined || undefined}>
          {lostSince !== undefined && <ConnectionBanner since={lostSince} />}
          {children}
        </main>
      </div>
      <Shortcuts />
    </>
  )
}

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' })

/** Screen readers announce the time of the loss once; the counting time beside it is hidden from them. */
const ConnectionBanner = ({ since }: { readonly since: string }) => (
  <div className="banner">
    <Icon name="offline" />
    <span role="status">{`Connection lost at ${clock.format(new Date(since))}. This page shows the last known state and reconnects automatically.`}</span>
    <span aria-hidden="true">
      <Time at={since} />
    </span>
  </div>
)

function Sidebar({ isOpen, path }: { readonly isOpen: boolean; readonly path: string }) {
  const { person } = useSession()
  return (
    <aside className="side" data-open={isOpen}>
      <Link className="brand" href="/">
        <Logo />
        svc3
      </Link>
      <button type="button" className="button finder" onClick={openFinder}>
        <Icon name="search" />
        <span>Search</span>
        <kbd>Ctrl K</kbd>
      </button>
      <NamespaceChoice />
      <nav className="nav" aria-label="Pages">
        {sectionsFor(person?.admin === true).map(({ title, links }) => (
          <Fragment key={title ?? ''}>
            {title !== undefined && <span className="nav-title">{title}</span>}
            <Links links={links} path={path} />
          </Fragment>
        ))}
      </nav>
      <SidebarFooter />
    </aside>
  )
}

interface LinksProps {
  readonly links: readonly NavLink[]
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
      label="Namespace"
      value={chosen}
      onValue={selectNamespace}
      labels={{ '': 'All namespaces' }}
      choices={all}
    />
  )
}

function SidebarFooter() {
  const { person } = useSession()
  const items = [
    { label: 'Log out', onChoose: () => void logOut(false) },
    { label: 'Log out everywhere', onChoose: () => void logOut(true) },
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
          {person?.admin && <div className="person small muted">Administrator</div>}
        </div>
        <Menu label="Account" items={items} />
      </div>
    </div>
  )
}

function ThemeChoice() {
  const chosen = useTheme()
  return (
    <fieldset className="segments" aria-label="Theme">
      {themes.map((theme) => (
        <label key={theme} title={themeNames[theme]}>
          <input
            type="radio"
            name="theme"
            aria-label={themeNames[theme]}
            checked={theme === chosen}
            onChange={() => chooseTheme(theme)}
          />
          <Icon name={theme} />
        </label>
      ))}
    </fieldset>
  )
}
